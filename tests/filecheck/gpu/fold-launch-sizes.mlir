// PASSES: fold-launch-sizes
//
// Sizes, and ids along axes of size 1, are constants; the other ids stay.

// CHECK-LABEL: gpu.func @k
// CHECK-DAG:     %[[N:.*]] = arith.constant 256 : index
// CHECK-DAG:     %[[G:.*]] = arith.constant 12 : index
// CHECK-DAG:     %[[Z:.*]] = arith.constant 0 : index
// CHECK-DAG:     %[[T:.*]] = gpu.thread_id x
// CHECK-DAG:     %[[B:.*]] = gpu.block_id y
// CHECK:         memref.store %{{.*}}, %{{.*}}[%[[N]], %[[G]], %[[Z]], %[[T]], %[[B]]]
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k(%x: memref<300x300x300x300x300xf32>) kernel
        attributes {known_block_size = array<i32: 256, 1, 1>,
                    known_grid_size = array<i32: 4, 12, 1>} {
      %one = arith.constant 1.0 : f32
      %n = gpu.block_dim x
      %g = gpu.grid_dim y
      %z = gpu.thread_id z
      %t = gpu.thread_id x
      %b = gpu.block_id y
      memref.store %one, %x[%n, %g, %z, %t, %b] : memref<300x300x300x300x300xf32>
      gpu.return
    }
  }
}
