// PASSES: vectorize-nests
// ARCH: x86-64-v4
//
// A loop that copies parts of rows into a panel fetches parts of later rows, 4 KB ahead, also where a
// part is walked in two loops. Whole rows are one run, which hardware reads ahead by itself; what the
// nearest cache has room for, and what no other loop of the nest reads again, is not fetched.

// CHECK-DAG:   #[[TWO:.*]] = affine_map<(d0) -> (d0 + 2)>
// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[K:.*]] = 0 to 256 {
// CHECK:           affine.for %[[P:.*]] = 0 to 16 {
// CHECK:             %[[PLACE:.*]] = affine.apply
// CHECK:             %[[BELOW:.*]] = affine.apply #[[TWO]](%[[K]])
// CHECK:             scf.for %[[J:.*]] =
// CHECK:               %[[AT:.*]] = arith.addi %[[J]], %[[PLACE]]
// CHECK:               memref.prefetch %arg0[%[[BELOW]], %[[AT]]], read, locality<2>, data
// CHECK-NOT:     memref.prefetch

module {
  func.func @main(%parts: memref<256x1024xf32>, %r0: memref<512xf32>, %whole: memref<256x512xf32>,
                  %r1: memref<512xf32>, %few: memref<8x1024xf32>, %r2: memref<512xf32>,
                  %copy: memref<256x512xf32>) {
    affine.for %n = 0 to 1 {
      %panel = memref.alloca() : memref<16x256x32xf32>
      affine.for %k = 0 to 256 {
        affine.for %p = 0 to 16 {
          affine.for %j = 0 to 32 {
            %x = affine.load %parts[%k, %p * 32 + %j] : memref<256x1024xf32>
            affine.store %x, %panel[%p, %k, %j] : memref<16x256x32xf32>
          }
        }
      }
      affine.for %p = 0 to 16 {
        affine.for %j = 0 to 32 {
          %x = affine.load %panel[%p, 7, %j] : memref<16x256x32xf32>
          affine.store %x, %r0[%p * 32 + %j] : memref<512xf32>
        }
      }
    }
    affine.for %n = 0 to 1 {
      %panel = memref.alloca() : memref<16x256x32xf32>
      affine.for %k = 0 to 256 {
        affine.for %p = 0 to 16 {
          affine.for %j = 0 to 32 {
            %x = affine.load %whole[%k, %p * 32 + %j] : memref<256x512xf32>
            affine.store %x, %panel[%p, %k, %j] : memref<16x256x32xf32>
          }
        }
      }
      affine.for %p = 0 to 16 {
        affine.for %j = 0 to 32 {
          %x = affine.load %panel[%p, 7, %j] : memref<16x256x32xf32>
          affine.store %x, %r1[%p * 32 + %j] : memref<512xf32>
        }
      }
    }
    affine.for %n = 0 to 1 {
      %panel = memref.alloca() : memref<16x8x32xf32>
      affine.for %k = 0 to 8 {
        affine.for %p = 0 to 16 {
          affine.for %j = 0 to 32 {
            %x = affine.load %few[%k, %p * 32 + %j] : memref<8x1024xf32>
            affine.store %x, %panel[%p, %k, %j] : memref<16x8x32xf32>
          }
        }
      }
      affine.for %p = 0 to 16 {
        affine.for %j = 0 to 32 {
          %x = affine.load %panel[%p, 7, %j] : memref<16x8x32xf32>
          affine.store %x, %r2[%p * 32 + %j] : memref<512xf32>
        }
      }
    }
    affine.for %k = 0 to 256 {
      affine.for %p = 0 to 16 {
        affine.for %j = 0 to 32 {
          %x = affine.load %parts[%k, %p * 32 + %j] : memref<256x1024xf32>
          affine.store %x, %copy[%k, %p * 32 + %j] : memref<256x512xf32>
        }
      }
    }
    return
  }
}
