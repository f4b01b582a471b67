// PASSES: choose-kernels,stage-operands,emit-kernels
// TARGET: gpu
//
// What one thread adds up is a sum of sums, where it is long: of 64 terms where the loop has no
// better part, and of 85 where four threads have 4505 terms each. A maximum has no rounding errors
// and stays one loop.

// CHECK:       gpu.func @kernel(
// CHECK-DAG:     %[[C64:.*]] = arith.constant 64 : index
// CHECK-DAG:     %[[C7:.*]] = arith.constant 7 : index
// CHECK:         %[[SUM:.*]] = scf.for %[[B:.*]] = %{{.*}} to %[[C7]] step %{{.*}} iter_args(%[[S:[^ ]*]] =
// CHECK:           %[[FIRST:.*]] = arith.muli %[[B]], %[[C64]]
// CHECK:           %[[REST:.*]] = arith.subi %{{.*}}, %[[FIRST]]
// CHECK:           %[[END:.*]] = arith.minui %[[C64]], %[[REST]]
// CHECK:           %[[ZERO:.*]] = arith.constant -0.000000e+00 : f32
// CHECK:           %[[P:.*]] = scf.for %{{.*}} to %[[END]] step %{{.*}} iter_args(%[[T:[^ ]*]] = %[[ZERO]])
// CHECK:             arith.addf %{{.*}}, %[[T]]
// CHECK:           arith.addf %[[S]], %[[P]]
// CHECK:         memref.store %[[SUM]]
// CHECK:       gpu.func @kernel_1
// CHECK:         scf.for %{{.*}} to %c53
// CHECK:           scf.for %{{.*}} to %c85
// CHECK:       gpu.func @kernel_2
// CHECK:         scf.for %{{.*}} to %c4505
// CHECK-NOT:     scf.for
// CHECK:       func.func @main
func.func @main(%a: memref<18022x262144xf32>, %b: memref<262144xf32>, %d: memref<64x401x256xf32>, %e: memref<64x255xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    %l = memref.alloca() : memref<256xf32>
    affine.for %j = 0 to 256 {
      %s = affine.for %k = 0 to 401 iter_args(%t = %zero) -> (f32) {
        %x = affine.load %d[%i, %k, %j] : memref<64x401x256xf32>
        %y = arith.addf %x, %t fastmath<reassoc> : f32
        affine.yield %y : f32
      }
      affine.store %s, %l[%j] : memref<256xf32>
    }
    affine.for %j = 0 to 255 {
      %x = affine.load %l[%j] : memref<256xf32>
      %y = affine.load %l[%j + 1] : memref<256xf32>
      %z = arith.subf %x, %y : f32
      affine.store %z, %e[%i, %j] : memref<64x255xf32>
    }
  }
  affine.for %i = 0 to 262144 {
    %s = affine.for %k = 0 to 18022 iter_args(%t = %zero) -> (f32) {
      %x = affine.load %a[%k, %i] : memref<18022x262144xf32>
      %y = arith.addf %x, %t fastmath<reassoc> : f32
      affine.yield %y : f32
    }
    affine.store %s, %b[%i] : memref<262144xf32>
  }
  affine.for %i = 0 to 262144 {
    %s = affine.for %k = 0 to 18022 iter_args(%t = %zero) -> (f32) {
      %x = affine.load %a[%k, %i] : memref<18022x262144xf32>
      %y = arith.maximumf %x, %t : f32
      affine.yield %y : f32
    }
    affine.store %s, %b[%i] : memref<262144xf32>
  }
  return
}
