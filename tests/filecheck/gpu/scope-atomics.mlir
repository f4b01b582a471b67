// PASSES: scope-atomics
//
// The scope is the device, or the block for shared memory. Order is kept where the result is used, of
// shared memory alone; fences are the device's.

// CHECK-LABEL: llvm.func @k
// CHECK:         llvm.atomicrmw fadd %{{.*}}, %{{.*}} syncscope("device") monotonic
// CHECK:         llvm.atomicrmw add %{{.*}}, %{{.*}} syncscope("block") acq_rel
// CHECK:         llvm.atomicrmw add %{{.*}}, %{{.*}} syncscope("device") monotonic
// CHECK:         llvm.fence syncscope("device") release
// CHECK:         llvm.load %{{.*}} atomic syncscope("device") monotonic {alignment = 4 : i64}
// CHECK:         llvm.load %{{.*}} : !llvm.ptr<1> -> i32
// CHECK:         llvm.cmpxchg %{{.*}}, %{{.*}}, %{{.*}} syncscope("device") monotonic monotonic
gpu.module @kernels {
  llvm.func @k(%p: !llvm.ptr<1>, %q: !llvm.ptr<1>, %s: !llvm.ptr<3>, %x: f32, %i: i32) attributes {gpu.kernel} {
    %0 = llvm.atomicrmw fadd %p, %x acq_rel : !llvm.ptr<1>, f32
    %1 = llvm.atomicrmw add %s, %i acq_rel : !llvm.ptr<3>, i32
    %6 = llvm.atomicrmw add %q, %i acq_rel : !llvm.ptr<1>, i32
    llvm.fence release
    %7 = llvm.atomicrmw add %q, %6 acq_rel : !llvm.ptr<1>, i32
    %2 = llvm.load %p : !llvm.ptr<1> -> i32
    %3 = llvm.load %q : !llvm.ptr<1> -> i32
    %4 = llvm.add %1, %3 : i32
    %5 = llvm.cmpxchg %p, %2, %4 acq_rel monotonic : !llvm.ptr<1>, i32
    llvm.return
  }
}
