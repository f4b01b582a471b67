// PASSES: plan-contractions,tile-contractions,expand-packing
// ARCH: x86-64-v4
//
// The pixels of a convolution are moved by two loops, and so is the window. The rows of a tile are
// in one loop of pixels, and the channels, which are the most steps, in the loop inside: then all
// that is read is where it was, and no pixels are written out for the window's places. The weights,
// whose order is another one, are transposed in squares, and their rows put in this order.

// CHECK-LABEL: func.func @main
// CHECK:         %[[PANEL:.*]] = memref.alloca() {{.*}} : memref<1x576x32xf32>
// CHECK:         %[[ROWS:.*]] = memref.alloca() {{.*}} : memref<576x16xf32>
// CHECK:         affine.store %{{.*}}, %[[ROWS]][%{{.*}} + %{{.*}} * 16, %{{.*}}]
// CHECK:         affine.for %[[Y:.*]] = 0 to 3 {
// CHECK-NEXT:      affine.for %[[X:.*]] = 0 to 3 {
// CHECK-NEXT:        affine.for %[[C:.*]] = 0 to 64 {
// CHECK:               affine.load %[[ROWS]][%[[Y]] * 3 + %[[X]] + %[[C]] * 9, %{{.*}}]
// CHECK-NEXT:          affine.store %{{.*}}, %[[PANEL]][0, %[[Y]] * 192 + %[[X]] * 64 + %[[C]], %{{.*}}]
// CHECK:         affine.for %[[LANE:.*]] = 0 to 32 {
// CHECK:           affine.for %[[Y:.*]] = 0 to 3 {
// CHECK:             affine.for %[[X:.*]] = 0 to 3 iter_args
// CHECK-NEXT:          affine.for %[[C:.*]] = 0 to 64 iter_args
// CHECK-NEXT:            affine.load %[[PANEL]][0, %[[Y]] * 192 + %[[X]] * 64 + %[[C]], %[[LANE]]]
// CHECK-NEXT:            affine.load %{{.*}}[%[[Y]] * 16 + %[[X]] + %[[C]] * 256 + {{.*}}] : memref<16384xf32>
func.func @main(%x: memref<1x64x16x16xf32>, %w: memref<64x64x3x3xf32>, %y: memref<1x14x14x64xf32>) {
  %z = arith.constant 0.0 : f32
  affine.for %i = 0 to 14 { affine.for %j = 0 to 14 { affine.for %o = 0 to 64 {
    %r = affine.for %c = 0 to 64 iter_args(%a0 = %z) -> (f32) {
      %r1 = affine.for %u = 0 to 3 iter_args(%a1 = %a0) -> (f32) {
        %r2 = affine.for %v = 0 to 3 iter_args(%a2 = %a1) -> (f32) {
          %p = affine.load %x[0, %c, %i + %u, %j + %v] : memref<1x64x16x16xf32>
          %q = affine.load %w[%o, %c, %u, %v] : memref<64x64x3x3xf32>
          %m = arith.mulf %p, %q fastmath<reassoc,contract> : f32
          %t = arith.addf %a2, %m fastmath<reassoc,contract> : f32
          affine.yield %t : f32
        }
        affine.yield %r2 : f32
      }
      affine.yield %r1 : f32
    }
    affine.store %r, %y[0, %i, %j, %o] : memref<1x14x14x64xf32>
  } } }
  return
}
