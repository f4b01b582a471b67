// PASSES: finish-kernels
//
// The size of blocks is exact, and as many as the mapping assumes are to run at once;
// dynamic shared memory is external and aligned as a kernel asks, other buffers are not.

// CHECK-DAG:   llvm.mlir.global external @__dynamic_shmem__0() {addr_space = 3 : i32, alignment = 1024 : i64}
// CHECK-DAG:   llvm.mlir.global internal @__wg_k_0() {addr_space = 3 : i32}
// CHECK-LABEL: llvm.func @k
// CHECK-NOT:     maxntid
// CHECK-SAME:    nvvm.minctasm = 3 : i32
// CHECK-SAME:    nvvm.reqntid = array<i32: 64, 1, 1>
// CHECK-LABEL: llvm.func @one
// CHECK-NOT:     minctasm
gpu.module @kernels {
  llvm.mlir.global internal @__dynamic_shmem__0() {addr_space = 3 : i32} : !llvm.array<0 x i8>
  llvm.mlir.global internal @__wg_k_0() {addr_space = 3 : i32} : !llvm.array<32 x f32>
  llvm.func @k(%p: !llvm.ptr<1>) attributes {gpu.kernel, gpu.known_block_size = array<i32: 64, 1, 1>, nvvm.kernel, nvvm.maxntid = array<i32: 64, 1, 1>, polyblocks.resident = 3 : i32, polyblocks.shared_alignment = 1024 : i32} {
    llvm.return
  }
  llvm.func @one(%p: !llvm.ptr<1>) attributes {gpu.kernel, gpu.known_block_size = array<i32: 64, 1, 1>, nvvm.kernel, nvvm.maxntid = array<i32: 64, 1, 1>, polyblocks.resident = 1 : i32} {
    llvm.return
  }
}
