// PASSES: hoist-buffers
//
// What nests allocate in their loops is allocated before them. A loop of the program keeps its own:
// it is new in every iteration.

// CHECK-LABEL: func.func @main
// CHECK:         %[[T:.*]] = memref.alloc() : memref<4xf32>
// CHECK:         affine.for
// CHECK-NOT:       memref.alloc
// CHECK:           affine.store %{{.*}}, %[[T]]
// CHECK:         scf.for
// CHECK:           %[[U:.*]] = memref.alloc() : memref<8xf32>
// CHECK:           affine.for
// CHECK-NOT:         memref.alloc
// CHECK:             affine.store %{{.*}}, %[[U]]
// CHECK:         } {polyblocks.region = "loop1"}
func.func @main(%a: memref<8x4xf32>, %b: memref<8xf32>, %n: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  affine.for %i = 0 to 8 {
    %t = memref.alloc() : memref<4xf32>
    affine.for %j = 0 to 4 {
      %x = affine.load %a[%i, %j] : memref<8x4xf32>
      affine.store %x, %t[%j] : memref<4xf32>
    }
    %y = affine.load %t[3] : memref<4xf32>
    affine.store %y, %b[%i] : memref<8xf32>
  }
  scf.for %k = %zero to %n step %one {
    affine.for %i = 0 to 8 {
      %u = memref.alloc() : memref<8xf32>
      %x = affine.load %b[%i] : memref<8xf32>
      affine.store %x, %u[%i] : memref<8xf32>
      %y = affine.load %u[%i] : memref<8xf32>
      affine.store %y, %b[7 - %i] : memref<8xf32>
    }
  } {polyblocks.region = "loop1"}
  return
}
