// PASSES: vectorize-nests
// ARCH: x86-64-v2
//
// A square tile is read by rows and transposed in registers; what is in order in the result is
// computed and stored by rows of the result.

// CHECK-LABEL: func.func @main
// CHECK-COUNT-4: vector.load %{{.*}} : memref<128x128xf32>, vector<4xf32>
// CHECK:         vector.shuffle %[[A:.*]], %[[C:.*]] [0, 1, 4, 5]
// CHECK:         vector.shuffle %[[A]], %[[C]] [2, 3, 6, 7]
// CHECK:         %[[L:.*]] = vector.shuffle %[[AB:.*]], %[[CD:.*]] [0, 4, 2, 6]
// CHECK:         %[[H:.*]] = vector.shuffle %[[AB]], %[[CD]] [1, 5, 3, 7]
// CHECK:         vector.load {{.*}} vector<4xf32>
// CHECK:         arith.addf %[[L]]
// CHECK:         vector.store
// CHECK:         arith.addf %[[H]]
// CHECK-NOT:     affine.load
func.func @main(%a: memref<128x128xf32>, %b: memref<128x128xf32>, %c: memref<128x128xf32>) {
  affine.for %ti = 0 to 32 {
    affine.for %tj = 0 to 32 {
      affine.for %i = 0 to 4 {
        affine.for %j = 0 to 4 {
          %x = affine.load %a[%tj * 4 + %j, %ti * 4 + %i] : memref<128x128xf32>
          %y = affine.load %b[%ti * 4 + %i, %tj * 4 + %j] : memref<128x128xf32>
          %z = arith.addf %x, %y : f32
          affine.store %z, %c[%ti * 4 + %i, %tj * 4 + %j] : memref<128x128xf32>
        }
      }
    }
  }
  return
}
