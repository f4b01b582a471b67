// PASSES: expand-atomics
//
// Products are tried until they work; sums are instructions.

// CHECK-LABEL: gpu.func @k
// CHECK:         memref.atomic_rmw addf
// CHECK:         %[[R:.*]] = memref.generic_atomic_rmw %{{.*}}[%{{.*}}] : memref<64xf32> {
// CHECK:         ^bb0(%[[OLD:.*]]: f32):
// CHECK:           %[[NEW:.*]] = arith.mulf %[[OLD]], %{{.*}} : f32
// CHECK:           memref.atomic_yield %[[NEW]] : f32
// CHECK:         memref.store %[[R]]
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k(%x: memref<64xf32>) kernel {
      %t = gpu.thread_id x
      %c0 = arith.constant 0 : index
      %v = memref.load %x[%t] : memref<64xf32>
      %0 = memref.atomic_rmw addf %v, %x[%c0] : (f32, memref<64xf32>) -> f32
      %1 = memref.atomic_rmw mulf %v, %x[%c0] : (f32, memref<64xf32>) -> f32
      memref.store %1, %x[%t] : memref<64xf32>
      gpu.return
    }
  }
}
