// PASSES: choose-kernels,stage-operands,emit-kernels
// TARGET: gpu
//
// A complex constant moves into the kernel; nothing of it stays behind for the host.

// CHECK:       gpu.func @kernel
// CHECK:         complex.constant
// CHECK:         complex.mul
// CHECK:       func.func @main
// CHECK-NOT:     complex.constant
// CHECK:         gpu.launch_func
func.func @main(%a: memref<64xcomplex<f32>>, %b: memref<64xcomplex<f32>>) {
  %z = complex.constant [0.0 : f32, 1.0 : f32] : complex<f32>
  affine.for %i = 0 to 64 {
    %x = affine.load %a[%i] : memref<64xcomplex<f32>>
    %y = complex.mul %x, %z : complex<f32>
    affine.store %y, %b[%i] : memref<64xcomplex<f32>>
  }
  return
}
