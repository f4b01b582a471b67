// PASSES: flatten-nests
//
// Dense loops become one loop over one-dimensional views. A transposed access keeps both loops.

// CHECK-LABEL: func.func @main
// CHECK-DAG:     memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [300], strides: [1] : memref<100x3xf32> to memref<300xf32>
// CHECK:         affine.for %[[T:.*]] = 0 to 300 {
// CHECK-NEXT:      affine.load %{{.*}}[%[[T]]] : memref<300xf32>
// CHECK:         affine.for %{{.*}} = 0 to 100 {
// CHECK-NEXT:      affine.for %{{.*}} = 0 to 3 {
func.func @main(%a: memref<100x3xf32>, %b: memref<100x3xf32>, %c: memref<3x100xf32>) {
  affine.for %i = 0 to 100 {
    affine.for %j = 0 to 3 {
      %x = affine.load %a[%i, %j] : memref<100x3xf32>
      %y = arith.negf %x : f32
      affine.store %y, %b[%i, %j] : memref<100x3xf32>
    }
  }
  affine.for %i = 0 to 100 {
    affine.for %j = 0 to 3 {
      %x = affine.load %a[%i, %j] : memref<100x3xf32>
      affine.store %x, %c[%j, %i] : memref<3x100xf32>
    }
  }
  return
}
