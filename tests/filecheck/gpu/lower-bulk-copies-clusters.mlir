// PASSES: lower-bulk-copies
// TARGET: nvgpu sm_90a
//
// In a cluster of two blocks each gets a box that is for both, and a thread arrives at a barrier of
// another block. The assembler and launches know the size of clusters.

// CHECK:       module
// CHECK-SAME:  cluster = 2 : i64
// CHECK:       llvm.func @k(
// CHECK-SAME:  nvvm.cluster_dim = array<i32: 2, 1, 1>
// CHECK:         %[[BLOCKS:.*]] = llvm.mlir.constant(3 : i16) : i16
// CHECK:         %[[SHARED:.*]] = llvm.mlir.constant(true) : i1
// CHECK:         llvm.call_intrinsic "llvm.nvvm.cp.async.bulk.tensor.g2s.tile.2d"({{.*}}, %[[BLOCKS]], %{{.*}}, %[[SHARED]],
// CHECK:         %[[BLOCKS:.*]] = llvm.mlir.constant(0 : i16) : i16
// CHECK:         %[[OWN:.*]] = llvm.mlir.constant(false) : i1
// CHECK:         llvm.call_intrinsic "llvm.nvvm.cp.async.bulk.tensor.g2s.tile.2d"({{.*}}, %[[BLOCKS]], %{{.*}}, %[[OWN]],
// CHECK:         %[[AT:.*]] = llvm.call_intrinsic "llvm.nvvm.mapa.shared.cluster"(%{{.*}}, %{{.*}}) : {{.*}} -> !llvm.ptr<7>
// CHECK:         llvm.call_intrinsic "llvm.nvvm.mbarrier.arrive.scope.cta.space.cluster"(%[[AT]], %{{.*}})
// CHECK-NOT:     polyblocks.bulk
module attributes {gpu.container_module, polyblocks.launches = [
    {arguments = [{argument = 1 : i64, offset = 64 : i64}], block = [128, 1, 1], grid = [2, 1, 1], kernel = "k", shared_bytes = 0 : i64}]} {
  gpu.module @kernels {
    llvm.func @k(%x: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel, polyblocks.cluster = 2 : i32} {
      %i = llvm.mlir.constant(64 : i32) : i32
      %to = llvm.mlir.constant(1024 : i64) : i64
      %at = llvm.inttoptr %to : i64 to !llvm.ptr<3>
      %c2 = llvm.mlir.constant(2 : i64) : i64
      %c16 = llvm.mlir.constant(16 : i64) : i64
      %c512 = llvm.mlir.constant(512 : i64) : i64
      %c256 = llvm.mlir.constant(256 : i64) : i64
      %c1024 = llvm.mlir.constant(1024 : i64) : i64
      %c64 = llvm.mlir.constant(64 : i64) : i64
      %c128 = llvm.mlir.constant(128 : i64) : i64
      llvm.call_intrinsic "llvm.polyblocks.bulk.share"(%at, %at, %x, %i, %i, %c2, %c2, %c16, %c512, %c256, %c1024, %c64, %c128) : (!llvm.ptr<3>, !llvm.ptr<3>, !llvm.ptr<1>, i32, i32, i64, i64, i64, i64, i64, i64, i64, i64) -> ()
      llvm.call_intrinsic "llvm.polyblocks.bulk.start"(%at, %at, %x, %i, %i, %c2, %c2, %c16, %c512, %c256, %c1024, %c64, %c128) : (!llvm.ptr<3>, !llvm.ptr<3>, !llvm.ptr<1>, i32, i32, i64, i64, i64, i64, i64, i64, i64, i64) -> ()
      llvm.call_intrinsic "llvm.polyblocks.bulk.arrive_at"(%at, %i) : (!llvm.ptr<3>, i32) -> ()
      llvm.return
    }
  }
}
