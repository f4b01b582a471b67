// PASSES: order-loops
// ARCH: znver4
//
// Columns of what the threads' own caches hold are shared out, half a KiB of a row at least; of what
// comes from memory a strip has a page of a row, or all of it.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %{{.*}} = 0 to 2 {
// CHECK:           memref.alloca() {alignment = 64 : i64} : memref<128xf32>
// CHECK:         affine.for %{{.*}} = 0 to 1 {
// CHECK:           memref.alloca() {alignment = 64 : i64} : memref<256xf32>
func.func @main(%a: memref<512x256xf32>, %b: memref<256xf32>, %c: memref<65536x256xf32>, %d: memref<256xf32>) {
  %least = arith.constant 0xFF800000 : f32
  affine.for %j = 0 to 256 {
    %r = affine.for %i = 0 to 512 iter_args(%m = %least) -> (f32) {
      %x = affine.load %a[%i, %j] : memref<512x256xf32>
      %y = arith.maximumf %m, %x : f32
      affine.yield %y : f32
    }
    affine.store %r, %b[%j] : memref<256xf32>
  }
  affine.for %j = 0 to 256 {
    %r = affine.for %i = 0 to 65536 iter_args(%m = %least) -> (f32) {
      %x = affine.load %c[%i, %j] : memref<65536x256xf32>
      %y = arith.maximumf %m, %x : f32
      affine.yield %y : f32
    }
    affine.store %r, %d[%j] : memref<256xf32>
  }
  return
}
