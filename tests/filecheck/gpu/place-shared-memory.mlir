// PASSES: place-shared-memory
//
// Small buffers stay, aligned for the widest access; where they are more than a kernel may declare
// they are views of one buffer that the launch asks for. A kernel may ask for more alignment.

// CHECK:       polyblocks.launches = [
// CHECK-SAME:    kernel = "small", shared_bytes = 0 : i64
// CHECK-SAME:    kernel = "large", shared_bytes = 65568 : i64
// CHECK-LABEL: gpu.func @small
// CHECK-SAME:    workgroup(%{{.*}} : memref<5xf32, #gpu.address_space<workgroup>> {llvm.align = 16 : i64})
// CHECK-NOT:     dynamic
// CHECK-LABEL: gpu.func @large
// CHECK-NOT:     workgroup(
// CHECK:         %[[ALL:.*]] = gpu.dynamic_shared_memory
// CHECK:         %[[C0:.*]] = arith.constant 0 : index
// CHECK:         %[[A:.*]] = memref.view %[[ALL]][%[[C0]]][] : {{.*}} to memref<5xf32, #gpu.address_space<workgroup>>
// CHECK:         %[[C32:.*]] = arith.constant 32 : index
// CHECK:         %[[B:.*]] = memref.view %[[ALL]][%[[C32]]][] : {{.*}} to memref<16384xf32, #gpu.address_space<workgroup>>
// CHECK:         memref.load %[[A]]
// CHECK:         memref.store %{{.*}}, %[[B]]
// CHECK-LABEL: gpu.func @aligned
// CHECK-SAME:    memref<5xf32, #gpu.address_space<workgroup>> {llvm.align = 1024 : i64}
module attributes {gpu.container_module,
    polyblocks.launches = [
      {kernel = "small", grid = [1, 1, 1], block = [64, 1, 1], arguments = []},
      {kernel = "large", grid = [1, 1, 1], block = [64, 1, 1], arguments = []},
      {kernel = "aligned", grid = [1, 1, 1], block = [64, 1, 1], arguments = []}]} {
  gpu.module @kernels {
    gpu.func @small() workgroup(%a : memref<5xf32, #gpu.address_space<workgroup>>) kernel {
      gpu.return
    }
    gpu.func @large() workgroup(%a : memref<5xf32, #gpu.address_space<workgroup>>,
                                %b : memref<16384xf32, #gpu.address_space<workgroup>>) kernel {
      %t = gpu.thread_id x
      %v = memref.load %a[%t] : memref<5xf32, #gpu.address_space<workgroup>>
      memref.store %v, %b[%t] : memref<16384xf32, #gpu.address_space<workgroup>>
      gpu.return
    }
    gpu.func @aligned() workgroup(%a : memref<5xf32, #gpu.address_space<workgroup>>) kernel
        attributes {polyblocks.shared_alignment = 1024 : i32} {
      gpu.return
    }
  }
}
