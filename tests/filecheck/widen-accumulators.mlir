// PASSES: widen-accumulators
//
// A bf16 sum of products is kept in f32; a bf16 maximum and an f32 sum stay as they are.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for
// CHECK:           %[[Z:.*]] = arith.extf %{{.*}} : bf16 to f32
// CHECK:           %[[R:.*]] = affine.for %{{.*}} iter_args(%[[S:.*]] = %[[Z]]) -> (f32) {
// CHECK-NOT:         arith.mulf {{.*}} : bf16
// CHECK:             %[[M:.*]] = arith.mulf %{{.*}}, %{{.*}} : f32
// CHECK:             arith.addf %[[S]], %[[M]] : f32
// CHECK:           %[[T:.*]] = arith.truncf %[[R]] : f32 to bf16
// CHECK:           affine.store %[[T]]
// CHECK:         affine.for
// CHECK:           affine.for {{.*}} -> (bf16) {
// CHECK:             arith.maximumf
// CHECK:         affine.for
// CHECK:           affine.for {{.*}} -> (f32) {
// CHECK-NOT:         arith.extf
func.func @main(%a: memref<8x64xbf16>, %b: memref<8xbf16>, %c: memref<8x64xf32>, %d: memref<8xf32>) {
  affine.for %i = 0 to 8 {
    %z = arith.constant 0.0 : bf16
    %r = affine.for %k = 0 to 64 iter_args(%s = %z) -> (bf16) {
      %x = affine.load %a[%i, %k] : memref<8x64xbf16>
      %m = arith.mulf %x, %x : bf16
      %t = arith.addf %s, %m : bf16
      affine.yield %t : bf16
    }
    affine.store %r, %b[%i] : memref<8xbf16>
  }
  affine.for %i = 0 to 8 {
    %z = arith.constant 0.0 : bf16
    %r = affine.for %k = 0 to 64 iter_args(%s = %z) -> (bf16) {
      %x = affine.load %a[%i, %k] : memref<8x64xbf16>
      %t = arith.maximumf %s, %x : bf16
      affine.yield %t : bf16
    }
    affine.store %r, %b[%i] : memref<8xbf16>
  }
  affine.for %i = 0 to 8 {
    %z = arith.constant 0.0 : f32
    %r = affine.for %k = 0 to 64 iter_args(%s = %z) -> (f32) {
      %x = affine.load %c[%i, %k] : memref<8x64xf32>
      %t = arith.addf %s, %x : f32
      affine.yield %t : f32
    }
    affine.store %r, %d[%i] : memref<8xf32>
  }
  return
}
