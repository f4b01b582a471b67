// PASSES: vectorize-pairs
//
// Complex numbers in global and shared memory are vectors there; private ones stay structures.

// CHECK-LABEL: llvm.func @k
// CHECK:         %[[V:.*]] = llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<1> -> vector<2xf32>
// CHECK:         llvm.insertvalue
// CHECK:         llvm.insertvalue
// CHECK:         llvm.insertelement
// CHECK:         llvm.insertelement
// CHECK:         llvm.store %{{.*}}, %{{.*}} {alignment = 8 : i64} : vector<2xf32>, !llvm.ptr<3>
// CHECK:         llvm.store %{{.*}}, %{{.*}} : !llvm.struct<(f32, f32)>, !llvm.ptr
// CHECK:         llvm.load %{{.*}} : !llvm.ptr<1> -> !llvm.struct<(i64, i1)>
gpu.module @kernels {
  llvm.func @k(%p: !llvm.ptr<1>, %s: !llvm.ptr<3>, %l: !llvm.ptr) attributes {gpu.kernel} {
    %0 = llvm.load %p : !llvm.ptr<1> -> !llvm.struct<(f32, f32)>
    llvm.store %0, %s : !llvm.struct<(f32, f32)>, !llvm.ptr<3>
    llvm.store %0, %l : !llvm.struct<(f32, f32)>, !llvm.ptr
    %1 = llvm.load %p : !llvm.ptr<1> -> !llvm.struct<(i64, i1)>
    llvm.return
  }
}
