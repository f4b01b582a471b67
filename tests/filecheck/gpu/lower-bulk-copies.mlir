// PASSES: lower-bulk-copies
// TARGET: nvgpu sm_90a
//
// The array of a copy of boxes becomes a tensor map, which the launch gets besides; a second copy of
// the same array has the same one, and so has a copy from shared memory. A kernel that gives registers away says with how many it begins.

// CHECK:       module
// CHECK-SAME:  arguments = [{argument = 1 : i64, offset = 64 : i64}, {tensor_map = {argument = 1 : i64, box = [64, 128], element_bytes = 2 : i64, extents = [512, 256], offset = 80 : i64, strides = [1024]}}]
// CHECK:       llvm.func @k(%[[X:.*]]: !llvm.ptr<1>, %[[MAP:.*]]: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant})
// CHECK-SAME:  nvvm.minctasm = 1 : i32
// CHECK:         llvm.call_intrinsic "llvm.nvvm.shfl.sync.idx.i32"
// CHECK:         %[[PAIR:.*]] = llvm.call_intrinsic "llvm.nvvm.elect.sync"
// CHECK:         llvm.extractvalue %[[PAIR]][1]
// CHECK:         llvm.inttoptr {{.*}} : i64 to !llvm.ptr<7>
// CHECK:         llvm.call_intrinsic "llvm.nvvm.cp.async.bulk.tensor.g2s.tile.2d"(%{{.*}}, %{{.*}}, %[[MAP]], %{{.*}}, %{{.*}}
// CHECK:         llvm.call_intrinsic "llvm.nvvm.cp.async.bulk.tensor.g2s.tile.2d"(%{{.*}}, %{{.*}}, %[[MAP]], %{{.*}}, %{{.*}}
// CHECK:         llvm.call_intrinsic "llvm.nvvm.cp.async.bulk.tensor.s2g.tile.2d"(%{{.*}}, %[[MAP]], %{{.*}}, %{{.*}}
// CHECK-NOT:     polyblocks.bulk
module attributes {gpu.container_module, polyblocks.launches = [
    {arguments = [{argument = 1 : i64, offset = 64 : i64}], block = [128, 1, 1], grid = [1, 1, 1], kernel = "k", shared_bytes = 0 : i64}]} {
  gpu.module @kernels {
    llvm.func @k(%x: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel} {
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
      %n = llvm.mlir.constant(24 : i32) : i32
      llvm.call_intrinsic "llvm.nvvm.setmaxnreg.dec.sync.aligned.u32"(%n) : (i32) -> ()
      %w = llvm.call_intrinsic "llvm.polyblocks.bulk.uniform"(%i) : (i32) -> i32
      %e = llvm.call_intrinsic "llvm.polyblocks.bulk.elect"() : () -> i1
      llvm.call_intrinsic "llvm.polyblocks.bulk.start"(%at, %at, %x, %w, %i, %c2, %c2, %c16, %c512, %c256, %c1024, %c64, %c128) : (!llvm.ptr<3>, !llvm.ptr<3>, !llvm.ptr<1>, i32, i32, i64, i64, i64, i64, i64, i64, i64, i64) -> ()
      llvm.call_intrinsic "llvm.polyblocks.bulk.start"(%at, %at, %x, %i, %w, %c2, %c2, %c16, %c512, %c256, %c1024, %c64, %c128) : (!llvm.ptr<3>, !llvm.ptr<3>, !llvm.ptr<1>, i32, i32, i64, i64, i64, i64, i64, i64, i64, i64) -> ()
      llvm.call_intrinsic "llvm.polyblocks.bulk.store"(%at, %x, %i, %w, %c2, %c2, %c16, %c512, %c256, %c1024, %c64, %c128) : (!llvm.ptr<3>, !llvm.ptr<1>, i32, i32, i64, i64, i64, i64, i64, i64, i64, i64) -> ()
      llvm.return
    }
  }
}
