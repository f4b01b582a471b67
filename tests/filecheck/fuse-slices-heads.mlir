// PASSES: fuse-slices
// ARCH: x86-64-v3
//
// Heads that lie side by side in the sums and one behind the other in the result: the loop over
// columns becomes one over heads and one over columns of a head, and what is stored is the sums'
// epilogue. Where rows are only counted in other steps, the sums stay in memory, and so they do for
// heads of three, of which there are no vectors.

// CHECK-LABEL: func.func @main
// CHECK-NOT:     memref.alloc
// CHECK:         affine.for %[[I:.*]] = 0 to 6 {
// CHECK-NEXT:      affine.for %[[H:.*]] = 0 to 2 {
// CHECK-NEXT:        affine.for %[[D:.*]] = 0 to 8 {
// CHECK:               %[[SUM:.*]] = affine.for
// CHECK:               %[[BIAS:.*]] = affine.load %arg2[%[[H]] * 8 + %[[D]]]
// CHECK:               %[[OUT:.*]] = arith.addf %[[SUM]], %[[BIAS]]
// CHECK:               affine.store %[[OUT]], %arg3[%[[H]], %[[I]], %[[D]]]
// CHECK:         %[[ROWS:.*]] = memref.alloc() : memref<6x16xf32>
// CHECK:           affine.load %[[ROWS]]
// CHECK:         %[[ODD:.*]] = memref.alloc() : memref<6x15xf32>
// CHECK:           affine.load %[[ODD]]
func.func @main(%x: memref<6x9xf32>, %w: memref<9x16xf32>, %b: memref<16xf32>,
                %heads: memref<2x6x8xf32>, %view: memref<2x3x16xf32>, %odd: memref<5x6x3xf32>) {
  %zero = arith.constant 0.0 : f32
  %s = memref.alloc() : memref<6x16xf32>
  affine.for %i = 0 to 6 {
    affine.for %j = 0 to 16 {
      %r = affine.for %k = 0 to 9 iter_args(%c = %zero) -> f32 {
        %p = affine.load %x[%i, %k] : memref<6x9xf32>
        %q = affine.load %w[%k, %j] : memref<9x16xf32>
        %m = arith.mulf %p, %q : f32
        %n = arith.addf %c, %m : f32
        affine.yield %n : f32
      }
      affine.store %r, %s[%i, %j] : memref<6x16xf32>
    }
  }
  affine.for %h = 0 to 2 {
    affine.for %i = 0 to 6 {
      affine.for %d = 0 to 8 {
        %p = affine.load %s[%i, %h * 8 + %d] : memref<6x16xf32>
        %q = affine.load %b[%h * 8 + %d] : memref<16xf32>
        %n = arith.addf %p, %q : f32
        affine.store %n, %heads[%h, %i, %d] : memref<2x6x8xf32>
      }
    }
  }
  %t = memref.alloc() : memref<6x16xf32>
  affine.for %i = 0 to 6 {
    affine.for %j = 0 to 16 {
      %r = affine.for %k = 0 to 9 iter_args(%c = %zero) -> f32 {
        %p = affine.load %x[%i, %k] : memref<6x9xf32>
        %q = affine.load %w[%k, %j] : memref<9x16xf32>
        %m = arith.mulf %p, %q : f32
        %n = arith.subf %c, %m : f32
        affine.yield %n : f32
      }
      affine.store %r, %t[%i, %j] : memref<6x16xf32>
    }
  }
  affine.for %h = 0 to 2 {
    affine.for %i = 0 to 3 {
      affine.for %j = 0 to 16 {
        %p = affine.load %t[%h * 3 + %i, %j] : memref<6x16xf32>
        %n = arith.negf %p : f32
        affine.store %n, %view[%h, %i, %j] : memref<2x3x16xf32>
      }
    }
  }
  %u = memref.alloc() : memref<6x15xf32>
  affine.for %i = 0 to 6 {
    affine.for %j = 0 to 15 {
      %r = affine.for %k = 0 to 9 iter_args(%c = %zero) -> f32 {
        %p = affine.load %x[%i, %k] : memref<6x9xf32>
        %q = affine.load %w[%k, %j] : memref<9x16xf32>
        %m = arith.mulf %p, %q : f32
        %n = arith.addf %c, %m : f32
        affine.yield %n : f32
      }
      affine.store %r, %u[%i, %j] : memref<6x15xf32>
    }
  }
  affine.for %h = 0 to 5 {
    affine.for %i = 0 to 6 {
      affine.for %d = 0 to 3 {
        %p = affine.load %u[%i, %h * 3 + %d] : memref<6x15xf32>
        %n = arith.negf %p : f32
        affine.store %n, %odd[%h, %i, %d] : memref<5x6x3xf32>
      }
    }
  }
  return
}
