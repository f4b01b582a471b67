// PASSES: normalize-nests,forward-copies
//
// The next state takes the place of the last one: every element is read where it is replaced.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for
// CHECK-NEXT:      affine.for %[[J:.*]] = 0 to 64 {
// CHECK-NEXT:        %[[V:.*]] = affine.load %arg0[%[[J]]]
// CHECK-NEXT:        %[[N:.*]] = arith.negf %[[V]]
// CHECK-NEXT:        affine.store %[[N]], %arg0[%[[J]]]
// CHECK-NEXT:      }
// CHECK-NEXT:    } {polyblocks.region = 
// Here a neighbour is read, which another iteration would have replaced: the copy stays.
// CHECK:         affine.for
// CHECK:           affine.for
// CHECK:           affine.for
// CHECK:         } {polyblocks.region = 
func.func @main(%h: memref<64xf32> {polyblocks.arg = {role = "output", name = "h", dtype = "float32", shape = array<i64: 64>, strides = array<i64: 1>, constant = false, updates = -1 : i64}}) {
  affine.for %i = 0 to 10 {
    %own = memref.alloc() : memref<64xf32>
    affine.for %j = 0 to 64 {
      %v = affine.load %h[%j] : memref<64xf32>
      %n = arith.negf %v : f32
      affine.store %n, %own[%j] : memref<64xf32>
    }
    memref.copy %own, %h : memref<64xf32> to memref<64xf32>
  } {polyblocks.region = "loop1"}
  affine.for %i = 0 to 10 {
    %own = memref.alloc() : memref<64xf32>
    affine.for %j = 0 to 64 {
      %v = affine.load %h[-%j + 63] : memref<64xf32>
      %n = arith.negf %v : f32
      affine.store %n, %own[%j] : memref<64xf32>
    }
    memref.copy %own, %h : memref<64xf32> to memref<64xf32>
  } {polyblocks.region = "loop2"}
  return
}
