// PASSES: choose-kernels,stage-operands,emit-kernels
// TARGET: gpu
//
// All rows are multiplied by the same factors: a block of several rows begins with a copy of them
// in shared memory, and waits for it once. Four neighbours are loaded and stored at once.

// CHECK:       gpu.func @kernel
// CHECK-SAME:    workgroup(%[[W:.*]] : memref<1024xf32, #gpu.address_space<workgroup>>
// CHECK:         vector.load %arg1
// CHECK:         vector.store {{.*}}, %[[W]]
// CHECK:         gpu.barrier
// CHECK-NOT:     vector.load %arg1
// CHECK:         vector.load %[[W]]
// CHECK:         gpu.return
func.func @main(%a: memref<8192x1024xf32>, %w: memref<1024xf32>, %b: memref<8192xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 8192 {
    %s = affine.for %k = 0 to 1024 iter_args(%t = %zero) -> (f32) {
      %x = affine.load %a[%i, %k] : memref<8192x1024xf32>
      %y = affine.load %w[%k] : memref<1024xf32>
      %z = arith.mulf %x, %y fastmath<reassoc> : f32
      %v = arith.addf %t, %z fastmath<reassoc> : f32
      affine.yield %v : f32
    }
    affine.store %s, %b[%i] : memref<8192xf32>
  }
  return
}
