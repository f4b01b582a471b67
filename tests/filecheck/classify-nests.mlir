// PASSES: classify-nests
//
// Kinds come from the accesses.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for
// CHECK:         } {polyblocks.kernel = "pointwise", polyblocks.kind = "pointwise"
// CHECK:         } {polyblocks.kernel = "stencil", polyblocks.kind = "stencil"
// CHECK:         } {polyblocks.kernel = "copy", polyblocks.kind = "copy"
// CHECK:         } {polyblocks.kernel = "gather", polyblocks.kind = "gather"
// CHECK:         } {polyblocks.kernel = "contraction", polyblocks.kind = "contraction"
// CHECK:           arith.maximumf
// CHECK:         } {polyblocks.kernel = "contraction_2", polyblocks.kind = "contraction"
// CHECK:         } {polyblocks.kernel = "contraction_3", polyblocks.kind = "contraction"
// CHECK:         } {polyblocks.kernel = "reduction", polyblocks.kind = "reduction"
func.func @main(%a: memref<8x8xf32>, %b: memref<8x8xf32>, %c: memref<8xf32>, %p: memref<8xi64>, %d: memref<8x8xf32>) {
  affine.for %i = 0 to 8 {
    %x = affine.load %c[%i] : memref<8xf32>
    %y = arith.negf %x : f32
    affine.store %y, %c[%i] : memref<8xf32>
  }
  affine.for %i = 0 to 7 {
    %x = affine.load %a[0, %i] : memref<8x8xf32>
    %y = affine.load %a[0, %i + 1] : memref<8x8xf32>
    %z = arith.addf %x, %y : f32
    affine.store %z, %c[%i] : memref<8xf32>
  }
  affine.for %i = 0 to 8 {
    %x = affine.load %a[%i, 0] : memref<8x8xf32>
    affine.store %x, %c[%i] : memref<8xf32>
  }
  affine.for %i = 0 to 8 {
    %k = affine.load %p[%i] : memref<8xi64>
    %l = arith.index_cast %k : i64 to index
    %x = memref.load %c[%l] : memref<8xf32>
    affine.store %x, %b[0, %i] : memref<8x8xf32>
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 8 {
      %z = arith.constant 0.0 : f32
      %r = affine.for %k = 0 to 8 iter_args(%s = %z) -> (f32) {
        %x = affine.load %a[%i, %k] : memref<8x8xf32>
        %y = affine.load %b[%k, %j] : memref<8x8xf32>
        %m = arith.mulf %x, %y : f32
        %t = arith.addf %s, %m : f32
        affine.yield %t : f32
      }
      affine.store %r, %d[%i, %j] : memref<8x8xf32>
    }
  }
  // What is read of the operands may be combined in any way.
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 8 {
      %z = arith.constant 0.0 : f32
      %r = affine.for %k = 0 to 8 iter_args(%s = %z) -> (f32) {
        %x = affine.load %a[%i, %k] : memref<8x8xf32>
        %y = affine.load %b[%j, %k] : memref<8x8xf32>
        %m = arith.subf %x, %y : f32
        %t = arith.maximumf %s, %m : f32
        affine.yield %t : f32
      }
      affine.store %r, %d[%i, %j] : memref<8x8xf32>
    }
  }
  // An unrolled one.
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 8 {
      %x0 = affine.load %a[%i, 0] : memref<8x8xf32>
      %y0 = affine.load %b[0, %j] : memref<8x8xf32>
      %m0 = arith.mulf %x0, %y0 : f32
      %x1 = affine.load %a[%i, 1] : memref<8x8xf32>
      %y1 = affine.load %b[1, %j] : memref<8x8xf32>
      %m1 = arith.mulf %x1, %y1 : f32
      %s = arith.addf %m0, %m1 : f32
      affine.store %s, %d[%i, %j] : memref<8x8xf32>
    }
  }
  // Nothing but rows moves operands.
  affine.for %i = 0 to 8 {
    %z = arith.constant 0.0 : f32
    %r = affine.for %k = 0 to 8 iter_args(%s = %z) -> (f32) {
      %x = affine.load %a[%i, %k] : memref<8x8xf32>
      %y = affine.load %c[%k] : memref<8xf32>
      %m = arith.mulf %x, %y : f32
      %t = arith.addf %s, %m : f32
      affine.yield %t : f32
    }
    affine.store %r, %d[%i, 0] : memref<8x8xf32>
  }
  return
}
