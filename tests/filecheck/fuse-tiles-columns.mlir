// PASSES: classify-nests,fuse-tiles
//
// Two loops count through columns together, and a stage stores two parts of one: tiles have whole
// columns, a number of them side by side.

// CHECK-LABEL: func.func @main
// CHECK-NOT:     memref.alloc(
// CHECK:         affine.for %[[T:.*]] = 0 to
// CHECK:           memref.alloca() {{.*}} : memref<256x[[W:[0-9]+]]xf32>
// CHECK:           affine.for %{{.*}} = 0 to 16 {
// CHECK-NEXT:        affine.for %{{.*}} = 0 to 8 {
// CHECK-NEXT:          affine.for %{{.*}} = 0 to [[W]] {
// CHECK:           affine.for %{{.*}} = 0 to 128 {
// CHECK-NEXT:        affine.for %{{.*}} = 0 to [[W]] {
// CHECK:             affine.store %{{.*}}, %arg1
// CHECK:             affine.store %{{.*}}, %arg1
func.func @main(%a: memref<256x65536xf32>, %b: memref<256x65536xf32>) {
  %m = memref.alloc() : memref<256x65536xf32>
  affine.for %p = 0 to 16 {
    affine.for %q = 0 to 8 {
      affine.for %i = 0 to 65536 {
        %x = affine.load %a[%p * 8 + %q, %i] : memref<256x65536xf32>
        %y = affine.load %a[%p * 8 + %q + 128, %i] : memref<256x65536xf32>
        %s = arith.addf %x, %y : f32
        %d = arith.subf %x, %y : f32
        affine.store %s, %m[%p * 16 + %q, %i] : memref<256x65536xf32>
        affine.store %d, %m[%p * 16 + %q + 8, %i] : memref<256x65536xf32>
      }
    }
  }
  affine.for %q = 0 to 128 {
    affine.for %i = 0 to 65536 {
      %x = affine.load %m[%q, %i] : memref<256x65536xf32>
      %y = affine.load %m[%q + 128, %i] : memref<256x65536xf32>
      %s = arith.addf %x, %y : f32
      %d = arith.subf %x, %y : f32
      affine.store %s, %b[%q, %i] : memref<256x65536xf32>
      affine.store %d, %b[%q + 128, %i] : memref<256x65536xf32>
    }
  }
  return
}
