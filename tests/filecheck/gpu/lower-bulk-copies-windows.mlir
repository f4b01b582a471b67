// PASSES: lower-bulk-copies
// TARGET: nvgpu sm_90a
//
// The array of a copy of windows becomes a tensor map with its corners and steps; behind the first
// pixel come the offsets of the window's element, in 16 bits.

// CHECK:       module
// CHECK-SAME:  {tensor_map = {argument = 0 : i64, box = [64, 128], element_bytes = 2 : i64, extents = [64, 16, 14, 3], kind = "im2col", lower = [-1, -2], offset = 0 : i64, steps = [2, 1], strides = [128, 2048, 28672], upper = [-4, -3]}}
// CHECK:       llvm.func @k(%[[X:.*]]: !llvm.ptr<1>, %[[MAP:.*]]: !llvm.ptr {{{.*}}llvm.byval = !llvm.array<128 x i8>
// CHECK-DAG:     %[[W:.*]] = llvm.mlir.constant(5 : i32) : i32
// CHECK-DAG:     %[[H:.*]] = llvm.mlir.constant(6 : i32) : i32
// CHECK-DAG:     %[[OW:.*]] = llvm.trunc %[[W]] : i32 to i16
// CHECK-DAG:     %[[OH:.*]] = llvm.trunc %[[H]] : i32 to i16
// CHECK:         llvm.call_intrinsic "llvm.nvvm.cp.async.bulk.tensor.g2s.im2col.4d"(%{{.*}}, %{{.*}}, %[[MAP]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[OW]], %[[OH]],
// CHECK-NOT:     polyblocks.bulk
module attributes {gpu.container_module, polyblocks.launches = [
    {arguments = [{argument = 0 : i64}], block = [128, 1, 1], grid = [1, 1, 1], kernel = "k", shared_bytes = 0 : i64}]} {
  gpu.module @kernels {
    llvm.func @k(%x: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel} {
      %i = llvm.mlir.constant(1 : i32) : i32
      %w = llvm.mlir.constant(5 : i32) : i32
      %h = llvm.mlir.constant(6 : i32) : i32
      %to = llvm.mlir.constant(1024 : i64) : i64
      %at = llvm.inttoptr %to : i64 to !llvm.ptr<3>
      %size = llvm.mlir.constant(2 : i64) : i64
      %rank = llvm.mlir.constant(4 : i64) : i64
      %c0 = llvm.mlir.constant(0 : i64) : i64
      %c64 = llvm.mlir.constant(64 : i64) : i64
      %c16 = llvm.mlir.constant(16 : i64) : i64
      %c14 = llvm.mlir.constant(14 : i64) : i64
      %c3 = llvm.mlir.constant(3 : i64) : i64
      %c128 = llvm.mlir.constant(128 : i64) : i64
      %c2048 = llvm.mlir.constant(2048 : i64) : i64
      %c28672 = llvm.mlir.constant(28672 : i64) : i64
      %m1 = llvm.mlir.constant(-1 : i64) : i64
      %m2 = llvm.mlir.constant(-2 : i64) : i64
      %m3 = llvm.mlir.constant(-3 : i64) : i64
      %m4 = llvm.mlir.constant(-4 : i64) : i64
      %c1 = llvm.mlir.constant(1 : i64) : i64
      llvm.call_intrinsic "llvm.polyblocks.bulk.windows"(%at, %at, %x, %i, %i, %i, %i, %w, %h, %size, %rank, %c0, %c64, %c16, %c14, %c3, %c128, %c2048, %c28672, %c64, %c128, %m1, %m4, %size, %m2, %m3, %c1) : (!llvm.ptr<3>, !llvm.ptr<3>, !llvm.ptr<1>, i32, i32, i32, i32, i32, i32, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64) -> ()
      llvm.return
    }
  }
}
