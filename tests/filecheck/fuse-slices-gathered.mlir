// PASSES: fuse-slices
//
// One of four planes is chosen for each element: what the chosen one has in that place is computed
// where it is read, from a gather of the argument. A producer that reads nothing at run-time places
// uses the index itself.

// CHECK-LABEL: func.func @main
// CHECK-NOT:     memref.alloc
// CHECK:         affine.for %[[I:.*]] = 0 to 8 {
// CHECK:           %[[K:.*]] = arith.index_cast
// CHECK:           %[[X:.*]] = memref.load %{{.*}}[%[[K]], %[[I]]]
// CHECK:           %[[Y:.*]] = math.absf %[[X]]
// CHECK:           %[[N:.*]] = arith.index_cast %[[K]] : index to i32
// CHECK:           %[[F:.*]] = arith.sitofp %[[N]]
// CHECK:           arith.mulf %[[Y]], %[[F]]
// CHECK-NOT:     affine.for
func.func @main(%a: memref<4x8xf32>, %which: memref<8xi32>, %b: memref<8xf32>) {
  %t = memref.alloc() : memref<4x8xf32>
  affine.for %k = 0 to 4 {
    affine.for %i = 0 to 8 {
      %x = affine.load %a[%k, %i] : memref<4x8xf32>
      %y = math.absf %x : f32
      %n = arith.index_cast %k : index to i32
      %f = arith.sitofp %n : i32 to f32
      %z = arith.mulf %y, %f : f32
      affine.store %z, %t[%k, %i] : memref<4x8xf32>
    }
  }
  affine.for %i = 0 to 8 {
    %w = affine.load %which[%i] : memref<8xi32>
    %k = arith.index_cast %w : i32 to index
    %x = memref.load %t[%k, %i] : memref<4x8xf32>
    affine.store %x, %b[%i] : memref<8xf32>
  }
  return
}
