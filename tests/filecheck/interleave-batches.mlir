// PASSES: interleave-batches
// ARCH: x86-64-v4
//
// Rows of a matrix need those before them: 32 matrices at a time are lanes, in arrays whose last index is
// the lane. The slices of a block are copied to tiles and back; the eight matrices that are left are a
// nest of their own. Their short loops are unrolled.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[T:.*]] = 0 to 1 {
// CHECK-DAG:       memref.alloca() {{.*}} : memref<3x3x32xf32>
// CHECK-DAG:       %[[A:.*]] = memref.alloca() {{.*}} : memref<9x32xf32>
// CHECK-DAG:       %[[B:.*]] = memref.alloca() {{.*}} : memref<9x32xf32>
// CHECK:           affine.for %[[L:.*]] = 0 to 32 {
// CHECK:             affine.load %{{.*}}[%{{.*}} * 9 + 8]
// CHECK:           affine.for %[[L:.*]] = 0 to 32 {
// CHECK-NOT:         affine.for
// CHECK:             affine.store %{{.*}}, %{{.*}}[0, 0, %[[L]]] : memref<3x3x32xf32>
// CHECK:           } {polyblocks.lanes = 32 : i64}
// CHECK:           affine.for %[[L:.*]] = 0 to 32 {
// CHECK:             affine.store %{{.*}} : memref<360xf32>
// CHECK:         affine.for
// CHECK:           affine.for %{{.*}} = 0 to 8 {
// CHECK:           } {polyblocks.lanes = 32 : i64}
//
// Iterations of inner loops that do not need each other are lanes themselves.
//
// CHECK:         affine.for %{{.*}} = 0 to 100 {
// CHECK-NOT:       polyblocks.lanes
//
// Whether an iteration failed is a lane, too.
//
// CHECK:         affine.for %{{.*}} = 0 to 1 {
// CHECK:           memref.alloca() {{.*}} : memref<1x32xi1>
// CHECK:           } {polyblocks.lanes = 32 : i64}
// CHECK:           affine.store %{{.*}} : memref<32xi1>
//
// Checks are of all lanes that count.
//
// CHECK:         affine.for %{{.*}} = 0 to 1 {
// CHECK:           affine.for %{{.*}} = 0 to 32 {
// CHECK:             cf.assert
// CHECK:           } {polyblocks.lanes = 32 : i64}
// CHECK:           affine.for %{{.*}} = 0 to 4 {
// CHECK:             cf.assert
// CHECK:           } {polyblocks.lanes = 32 : i64}
//
// Steps may be a few more than a matrix of the most rows has.
//
// CHECK:         affine.for %{{.*}} = 0 to 1 {
// CHECK:           memref.alloca() {{.*}} : memref<3x32xf32>
// CHECK:           } {polyblocks.lanes = 32 : i64}
// CHECK:         affine.for %{{.*}} = 0 to 32 {
// CHECK:           affine.for %{{.*}} = 0 to 41 {
// CHECK-NOT:       polyblocks.lanes
// CHECK:         return
func.func @main(%a: memref<40x3x3xf32>, %b: memref<40x3x3xf32>, %c: memref<100x3xf32>, %d: memref<100x3xf32>, %e: memref<32x3xf32>, %f: memref<32xi1>, %g: memref<36x3xf32>, %h: memref<36xf32>, %k: memref<32x3xf32>, %l: memref<32x3xf32>) {
  affine.for %t = 0 to 40 {
    %w = memref.alloca() : memref<3x3xf32>
    affine.for %i = 0 to 3 {
      affine.for %j = 0 to 3 {
        %x = affine.load %a[%t, %i, %j] : memref<40x3x3xf32>
        affine.store %x, %w[%i, %j] : memref<3x3xf32>
      }
    }
    affine.for %i = 1 to 3 {
      affine.for %j = 0 to 3 {
        %x = affine.load %w[%i, %j] : memref<3x3xf32>
        %y = affine.load %w[%i - 1, %j] : memref<3x3xf32>
        %z = arith.subf %x, %y : f32
        affine.store %z, %w[%i, %j] : memref<3x3xf32>
      }
    }
    affine.for %i = 0 to 3 {
      affine.for %j = 0 to 3 {
        %x = affine.load %w[%i, %j] : memref<3x3xf32>
        affine.store %x, %b[%t, %i, %j] : memref<40x3x3xf32>
      }
    }
  }
  affine.for %t = 0 to 100 {
    %w = memref.alloca() : memref<3xf32>
    affine.for %i = 0 to 3 {
      %x = affine.load %c[%t, %i] : memref<100x3xf32>
      affine.store %x, %w[%i] : memref<3xf32>
    }
    affine.for %i = 0 to 3 {
      %x = affine.load %w[%i] : memref<3xf32>
      affine.store %x, %d[%t, %i] : memref<100x3xf32>
    }
  }
  affine.for %t = 0 to 32 {
    %w = memref.alloca() : memref<3xf32>
    affine.for %i = 0 to 3 {
      %x = affine.load %e[%t, %i] : memref<32x3xf32>
      affine.store %x, %w[%i] : memref<3xf32>
    }
    affine.for %i = 1 to 3 {
      %x = affine.load %w[%i - 1] : memref<3xf32>
      %y = affine.load %w[%i] : memref<3xf32>
      %z = arith.mulf %x, %y : f32
      affine.store %z, %w[%i] : memref<3xf32>
    }
    %v = affine.load %w[2] : memref<3xf32>
    %zero = arith.constant 0.0 : f32
    %failed = arith.cmpf ole, %v, %zero : f32
    affine.store %failed, %f[%t] : memref<32xi1>
  }
  affine.for %t = 0 to 36 {
    %w = memref.alloca() : memref<3xf32>
    affine.for %i = 0 to 3 {
      %x = affine.load %g[%t, %i] : memref<36x3xf32>
      %finite = arith.cmpf ord, %x, %x : f32
      cf.assert %finite, "not a number"
      affine.store %x, %w[%i] : memref<3xf32>
    }
    affine.for %i = 1 to 3 {
      %x = affine.load %w[%i - 1] : memref<3xf32>
      %y = affine.load %w[%i] : memref<3xf32>
      %z = arith.mulf %x, %y : f32
      affine.store %z, %w[%i] : memref<3xf32>
    }
    %v = affine.load %w[2] : memref<3xf32>
    affine.store %v, %h[%t] : memref<36xf32>
  }
  affine.for %t = 0 to 32 {
    %w = memref.alloca() : memref<3xf32>
    affine.for %i = 0 to 3 {
      %x = affine.load %e[%t, %i] : memref<32x3xf32>
      affine.store %x, %w[%i] : memref<3xf32>
    }
    affine.for %s = 0 to 36 {
      affine.for %i = 1 to 3 {
        %x = affine.load %w[%i - 1] : memref<3xf32>
        %y = affine.load %w[%i] : memref<3xf32>
        %z = arith.mulf %x, %y : f32
        affine.store %z, %w[%i] : memref<3xf32>
      }
    }
    affine.for %i = 0 to 3 {
      %x = affine.load %w[%i] : memref<3xf32>
      affine.store %x, %k[%t, %i] : memref<32x3xf32>
    }
  }
  affine.for %t = 0 to 32 {
    %w = memref.alloca() : memref<3xf32>
    affine.for %i = 0 to 3 {
      %x = affine.load %e[%t, %i] : memref<32x3xf32>
      affine.store %x, %w[%i] : memref<3xf32>
    }
    affine.for %s = 0 to 41 {
      affine.for %i = 1 to 3 {
        %x = affine.load %w[%i - 1] : memref<3xf32>
        %y = affine.load %w[%i] : memref<3xf32>
        %z = arith.mulf %x, %y : f32
        affine.store %z, %w[%i] : memref<3xf32>
      }
    }
    affine.for %i = 0 to 3 {
      %x = affine.load %w[%i] : memref<3xf32>
      affine.store %x, %l[%t, %i] : memref<32x3xf32>
    }
  }
  return
}
