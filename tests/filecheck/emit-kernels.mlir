// PASSES: choose-kernels,stage-operands,emit-kernels
// TARGET: gpu
//
// A row for each group of threads, which join their sums by shuffles; what the sum is needed for is
// computed by all of them and stored by one. Nothing is left in @main but the launch.

// CHECK:       gpu.module @kernels
// CHECK:         gpu.func @kernel(%[[A:.*]]: memref<4096x4096xf32> {llvm.noalias, llvm.readonly}, %[[B:.*]]: memref<4096xf32>)
// CHECK-SAME:      workgroup(%{{.*}} : memref<{{.*}}xf32, #gpu.address_space<workgroup>>)
// CHECK-SAME:      kernel attributes {known_block_size = array<i32: 256, 1, 1>
// CHECK:           gpu.thread_id
// CHECK-COUNT-4:   vector.load %[[A]]{{.*}}, vector<4xf32>
// CHECK:           arith.addf
// CHECK:           gpu.shuffle xor
// CHECK:           gpu.barrier
// CHECK-NOT:       gpu.barrier
// CHECK:           scf.if
// CHECK:             memref.store {{.*}}, %[[B]]
// CHECK:       func.func @main
// CHECK-NOT:     affine.for
// CHECK:         gpu.launch_func @kernels::@kernel
// CHECK-SAME:      args(%arg0 : memref<4096x4096xf32>, %arg1 : memref<4096xf32>)
func.func @main(%a: memref<4096x4096xf32>, %b: memref<4096xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 4096 {
    %s = affine.for %k = 0 to 4096 iter_args(%t = %zero) -> (f32) {
      %x = affine.load %a[%i, %k] : memref<4096x4096xf32>
      %y = arith.addf %x, %t fastmath<reassoc> : f32
      affine.yield %y : f32
    }
    %q = math.sqrt %s : f32
    affine.store %q, %b[%i] : memref<4096xf32>
  }
  return
}
