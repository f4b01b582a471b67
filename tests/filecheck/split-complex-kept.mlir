// PASSES: split-complex
//
// A loop of the program carries a complex number: the program stays as it is.

// CHECK-LABEL: func.func @main
// CHECK-SAME:      %arg0: memref<8xcomplex<f32>>
// CHECK:         complex.re
func.func @main(%a: memref<8xcomplex<f32>>, %b: memref<f32>) {
  %zero = complex.constant [0.0 : f32, 0.0 : f32] : complex<f32>
  %r = affine.for %i = 0 to 8 iter_args(%t = %zero) -> (complex<f32>) {
    %z = affine.load %a[%i] : memref<8xcomplex<f32>>
    affine.yield %z : complex<f32>
  }
  %x = complex.re %r : complex<f32>
  affine.store %x, %b[] : memref<f32>
  return
}
