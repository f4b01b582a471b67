// PASSES: stage-operands
// TARGET: nvgpu sm_90a
//
// The loops of a convolution, written by hand: one thread copies windows, pixel by pixel, and
// filters, in boxes, where threads had to copy pieces of 16 bytes without such copies.

// CHECK-LABEL: func.func @main
// CHECK:           memref.alloca() {{.*}} : memref<4x64x64xf16, "shared">
// CHECK-NEXT:      memref.alloca() {{.*}} : memref<4x64x64xf16, "shared">
// CHECK-NEXT:      "polyblocks.wait"() {of = "uses", pending = 3 : i64}
// CHECK-NEXT:      "polyblocks.copy"(%arg0, %{{.*}}) {{{.*}}kind = "bulk"
// CHECK-NEXT:      "polyblocks.copy"(%arg1, %{{.*}}) {{{.*}}kind = "bulk"
// CHECK-NEXT:      "polyblocks.commit"() : () -> ()
// CHECK:           affine.for %{{.*}} = 0 to 7 iter_args
// CHECK-NEXT:        "polyblocks.wait"() {of = "uses", pending = 3 : i64}
// CHECK-NEXT:        "polyblocks.copy"(%arg0, %{{.*}}) {{{.*}}kind = "bulk"
// CHECK-NEXT:        "polyblocks.copy"(%arg1, %{{.*}}) {{{.*}}kind = "bulk"
// CHECK-NOT:       kind = "asynchronous"
module {
  func.func @main(%a: memref<2x10x10x64xf16>, %b: memref<64x3x3x64xf16>, %c: memref<2x8x8x64xf16>) {
    %zero = arith.constant 0.0 : f32
    affine.for %n = 0 to 2 {
      affine.for %i = 0 to 8 {
        affine.for %j = 0 to 8 {
          affine.for %o = 0 to 64 {
            %r = affine.for %k = 0 to 3 iter_args(%r0 = %zero) -> (f32) {
              %s = affine.for %l = 0 to 3 iter_args(%s0 = %r0) -> (f32) {
                %t = affine.for %q = 0 to 64 iter_args(%t0 = %s0) -> (f32) {
                  %x = affine.load %a[%n, %i + %k, %j + %l, %q] : memref<2x10x10x64xf16>
                  %y = affine.load %b[%o, %k, %l, %q] : memref<64x3x3x64xf16>
                  %u = arith.extf %x : f16 to f32
                  %v = arith.extf %y : f16 to f32
                  %z = arith.mulf %u, %v fastmath<reassoc,contract> : f32
                  %w = arith.addf %t0, %z fastmath<reassoc,contract> : f32
                  affine.yield %w : f32
                }
                affine.yield %t : f32
              }
              affine.yield %s : f32
            }
            %h = arith.truncf %r : f32 to f16
            affine.store %h, %c[%n, %i, %j, %o] : memref<2x8x8x64xf16>
          }
        }
      }
    } {polyblocks.schedule = {
         kernel = "convolution", resident = 1, unit = "wgmma.m64n64k16", register_tile = [64, 64],
         block_tile = [64, 64], k_block = 64, stages = 4}}
    return
  }
}
