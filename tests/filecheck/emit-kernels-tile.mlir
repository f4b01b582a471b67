// PASSES: choose-kernels,stage-operands,emit-kernels
// TARGET: gpu
//
// A tile's buffer that neighbours read lives in shared memory: one barrier before it is read,
// none before the second loop that writes another part of it. One that only its own thread reads
// stays with the thread.

// CHECK:       gpu.func @kernel
// CHECK-SAME:    workgroup(%[[L:.*]] : memref<{{.*}}258xf32, #gpu.address_space<workgroup>>)
// CHECK-SAME:    private(%[[P:.*]] : memref<{{.*}}xf32, #gpu.address_space<private>>)
// CHECK-NOT:     gpu.barrier
// CHECK:         memref.store {{.*}}, %[[L]]
// CHECK-NOT:     gpu.barrier
// CHECK:         memref.store {{.*}}, %[[L]]
// CHECK:         gpu.barrier
// CHECK:         memref.load %[[L]]
// CHECK:         memref.store {{.*}}, %[[P]]
// CHECK-NOT:     gpu.barrier
// CHECK:         memref.load %[[P]]
// CHECK-NOT:     gpu.barrier
// CHECK:         gpu.return
func.func @main(%a: memref<1024x258xf32>, %b: memref<1024x256xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %t = 0 to 1024 {
    %l = memref.alloca() : memref<258xf32>
    %p = memref.alloca() : memref<256xf32>
    affine.for %j = 0 to 2 {
      affine.store %zero, %l[%j] : memref<258xf32>
    }
    affine.for %j = 0 to 256 {
      %x = affine.load %a[%t, %j] : memref<1024x258xf32>
      affine.store %x, %l[%j + 2] : memref<258xf32>
    }
    affine.for %j = 0 to 256 {
      %x = affine.load %l[%j] : memref<258xf32>
      %y = affine.load %l[%j + 1] : memref<258xf32>
      %z = arith.addf %x, %y : f32
      affine.store %z, %p[%j] : memref<256xf32>
    }
    affine.for %j = 0 to 256 {
      %x = affine.load %p[%j] : memref<256xf32>
      %y = arith.mulf %x, %x : f32
      affine.store %y, %b[%t, %j] : memref<1024x256xf32>
    }
  }
  return
}
