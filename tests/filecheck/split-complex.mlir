// PASSES: split-complex
//
// Complex numbers in memory are two real ones, side by side; code on their parts loads and stores
// these. A strided array stays one.

// CHECK-LABEL: func.func @main
// CHECK-SAME:      %arg0: memref<4x8x2xf32>
// CHECK-SAME:      %arg1: memref<4x8x2xf32, strided<[2, 8, 1]>>
// CHECK-NOT:     complex
// CHECK:           %[[X:.*]] = affine.load %arg0[%[[I:.*]], %[[J:.*]], 0]
// CHECK:           %[[Y:.*]] = affine.load %arg0[%[[I]], %[[J]], 1]
// CHECK:           %[[Z:.*]] = arith.addf %[[X]], %[[Y]]
// CHECK:           affine.store %[[Z]], %arg1[%[[I]], %[[J]], 0]
// CHECK:           affine.store %[[Y]], %arg1[%[[I]], %[[J]], 1]
// CHECK:           %[[K:.*]] = arith.index_cast
// CHECK:           %[[ONE:.*]] = arith.constant 1 : index
// CHECK:           memref.load %arg0[%[[K]], %{{.*}}, %[[ONE]]]
// CHECK:           arith.select %{{.*}} : f32
// CHECK:           arith.mulf
// CHECK-NOT:     complex
func.func @main(%a: memref<4x8xcomplex<f32>>,
                %b: memref<4x8xcomplex<f32>, strided<[1, 4]>>, %k: memref<i32>, %c: memref<f32>) {
  affine.for %i = 0 to 4 {
    affine.for %j = 0 to 8 {
      %z = affine.load %a[%i, %j] : memref<4x8xcomplex<f32>>
      %x = complex.re %z : complex<f32>
      %y = complex.im %z : complex<f32>
      %s = arith.addf %x, %y : f32
      %w = complex.create %s, %y : complex<f32>
      affine.store %w, %b[%i, %j] : memref<4x8xcomplex<f32>, strided<[1, 4]>>
    }
  }
  %zero = arith.constant 0 : index
  %n = affine.load %k[] : memref<i32>
  %at = arith.index_cast %n : i32 to index
  %p = memref.load %a[%at, %zero] : memref<4x8xcomplex<f32>>
  %q = complex.constant [0.0 : f32, 1.0 : f32] : complex<f32>
  %is = arith.cmpi eq, %at, %zero : index
  %r = arith.select %is, %p, %q : complex<f32>
  %t = complex.mul %p, %r : complex<f32>
  %u = complex.im %t : complex<f32>
  affine.store %u, %c[] : memref<f32>
  return
}
