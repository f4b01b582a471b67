// PASSES: assign-memory-spaces
//
// Arguments, their views and constants are global, allocations private; shared memory stays. A
// choice between two memrefs is made of memrefs of no space, as before.

// CHECK:       memref.global "private" constant @c : memref<4xf32, #gpu.address_space<global>>
// CHECK-LABEL: gpu.func @k
// CHECK-SAME:  (%[[X:.*]]: memref<64xf32, #gpu.address_space<global>>, %[[Y:.*]]: memref<64xf32, #gpu.address_space<global>>)
// CHECK-SAME:  workgroup(%{{.*}} : memref<64xf32, #gpu.address_space<workgroup>>)
// CHECK-DAG:     %[[PX:.*]] = memref.memory_space_cast %[[X]] : {{.*}} to memref<64xf32>
// CHECK-DAG:     %[[PY:.*]] = memref.memory_space_cast %[[Y]] : {{.*}} to memref<64xf32>
// CHECK:         memref.subview %[[X]][8] [4] [1] : {{.*}} to memref<4xf32, strided<[1], offset: 8>, #gpu.address_space<global>>
// CHECK:         memref.alloca() : memref<4xf32, #gpu.address_space<private>>
// CHECK:         memref.get_global @c : memref<4xf32, #gpu.address_space<global>>
// CHECK:         arith.select %{{.*}}, %[[PX]], %[[PY]] : memref<64xf32>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    memref.global "private" constant @c : memref<4xf32> = dense<1.0>
    gpu.func @k(%x: memref<64xf32>, %y: memref<64xf32>)
        workgroup(%s : memref<64xf32, #gpu.address_space<workgroup>>) kernel {
      %t = gpu.thread_id x
      %c0 = arith.constant 0 : index
      %v = memref.subview %x[8] [4] [1] : memref<64xf32> to memref<4xf32, strided<[1], offset: 8>>
      %a = memref.alloca() : memref<4xf32>
      %g = memref.get_global @c : memref<4xf32>
      %first = arith.cmpi eq, %t, %c0 : index
      %z = arith.select %first, %x, %y : memref<64xf32>
      %0 = memref.load %v[%t] : memref<4xf32, strided<[1], offset: 8>>
      memref.store %0, %a[%t] : memref<4xf32>
      %1 = memref.load %g[%t] : memref<4xf32>
      memref.store %1, %z[%t] : memref<64xf32>
      memref.store %1, %s[%t] : memref<64xf32, #gpu.address_space<workgroup>>
      gpu.return
    }
  }
}
