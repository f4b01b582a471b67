// PASSES: permit-atomics
// TARGET: amdgpu gfx1100
//
// Atomics know that their memory is the device's own; loads stay.

// CHECK-LABEL: llvm.func @k
// CHECK:         llvm.atomicrmw fadd {{.*}}rocdl.no_fine_grained_memory, rocdl.no_remote_memory
// CHECK:         llvm.load %{{.*}} : !llvm.ptr<1> -> f32
gpu.module @kernels {
  llvm.func @k(%p: !llvm.ptr<1>, %x: f32) attributes {gpu.kernel} {
    %0 = llvm.atomicrmw fadd %p, %x monotonic : !llvm.ptr<1>, f32
    %1 = llvm.load %p : !llvm.ptr<1> -> f32
    llvm.return
  }
}
