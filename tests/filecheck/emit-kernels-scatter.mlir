// PASSES: choose-kernels,stage-operands,emit-kernels
// TARGET: gpu
//
// Updates that may come in any order are atomic, and every thread does one. Those that may not be
// rearranged are done in their order, by one thread.

// CHECK:       gpu.func @kernel(
// CHECK:         memref.atomic_rmw addf
// CHECK-NOT:     memref.atomic_rmw
// CHECK:       gpu.func @kernel_1(
// CHECK-SAME:    known_block_size = array<i32: 32, 1, 1>
// CHECK:         scf.for
// CHECK:           memref.store
// CHECK:       gpu.launch_func @kernels::@kernel blocks
// CHECK:       gpu.launch_func @kernels::@kernel_1
func.func @main(%i: memref<5000xindex>, %a: memref<5000xf32>, %b: memref<64xf32>) {
  affine.for %k = 0 to 5000 {
    %j = affine.load %i[%k] : memref<5000xindex>
    %x = affine.load %a[%k] : memref<5000xf32>
    %y = memref.load %b[%j] : memref<64xf32>
    %z = arith.addf %x, %y fastmath<reassoc> : f32
    memref.store %z, %b[%j] : memref<64xf32>
  }
  affine.for %k = 0 to 5000 {
    %j = affine.load %i[%k] : memref<5000xindex>
    %x = affine.load %a[%k] : memref<5000xf32>
    memref.store %x, %b[%j] : memref<64xf32>
  }
  return
}
