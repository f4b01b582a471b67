// PASSES: choose-kernels,stage-operands,emit-kernels
// TARGET: gpu
//
// Rows and columns of a product share what they read: a block copies tiles of both operands to
// shared memory, with a barrier before and after; its threads keep their sums in registers. What
// the next turn needs is loaded while this one computes. Neighbours are loaded and stored at once, four
// by four: steps of the first operand, columns of the second one, and both of the tiles.

// CHECK:       gpu.func @kernel
// CHECK-SAME:    workgroup(%[[A:.*]] : memref<{{.*}}xf32, #gpu.address_space<workgroup>>, %[[B:.*]] : memref<{{.*}}xf32, #gpu.address_space<workgroup>>)
// CHECK:         vector.load %{{.*}} : memref<1048576xf32>, vector<4xf32>
// CHECK:         vector.load %{{.*}} : memref<1048576xf32>, vector<4xf32>
// CHECK:         scf.for
// CHECK-SAME:      iter_args
// CHECK:           gpu.barrier
// CHECK:           memref.store {{.*}}, %[[A]]
// CHECK:           vector.store {{.*}}, %[[B]]
// CHECK:           gpu.barrier
// CHECK:           scf.if
// CHECK:             vector.load %{{.*}} : memref<1048576xf32>, vector<4xf32>
// CHECK:           vector.load %[[A]]
// CHECK:           vector.load %[[B]]
// CHECK:           arith.mulf
// CHECK:         vector.store {{.*}}, %arg2
// CHECK:         gpu.return
func.func @main(%a: memref<1024x1024xf32>, %b: memref<1024x1024xf32>, %c: memref<1024x1024xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 1024 {
    affine.for %j = 0 to 1024 {
      %s = affine.for %k = 0 to 1024 iter_args(%t = %zero) -> (f32) {
        %x = affine.load %a[%i, %k] : memref<1024x1024xf32>
        %y = affine.load %b[%k, %j] : memref<1024x1024xf32>
        %z = arith.mulf %x, %y fastmath<reassoc> : f32
        %w = arith.addf %t, %z fastmath<reassoc> : f32
        affine.yield %w : f32
      }
      affine.store %s, %c[%i, %j] : memref<1024x1024xf32>
    }
  }
  return
}
