// PASSES: stage-operands
// TARGET: nvgpu sm_70
//
// The unit of Volta takes four steps at a time, so that a tile is for eight calls of it. Operands of
// the first ones come to registers before the loop, those of the next call during the one before; the
// next tile is stored before the last call, behind which are the first reads of it.

// CHECK-LABEL: func.func @main
// CHECK:           %[[A:.*]] = memref.alloca() {{.*}} : memref<2x32x32xf16, "shared">
// CHECK-NEXT:      %[[L:.*]] = memref.alloca() {{.*}} : memref<32xf16, "registers">
// CHECK-NEXT:      %[[X:.*]] = memref.alloca() {{.*}} : memref<2x32xf16, "registers">
// CHECK-NEXT:      %[[B:.*]] = memref.alloca() {{.*}} : memref<2x64x32xf16, "shared">
// CHECK-NEXT:      %[[M:.*]] = memref.alloca() {{.*}} : memref<32xf16, "registers">
// CHECK-NEXT:      %[[Y:.*]] = memref.alloca() {{.*}} : memref<2x32xf16, "registers">
// CHECK:           affine.for %[[T:.*]] = 0 to 7 iter_args
// CHECK-NEXT:        "polyblocks.copy"(%arg0, %[[L]]
// CHECK-NEXT:        "polyblocks.copy"(%arg1, %[[M]]
// CHECK-COUNT-12:    {polyblocks.unit_steps = "mma.m8n8k4"}
// CHECK-NOT:         "polyblocks.barrier"
// CHECK:             "polyblocks.copy"(%[[L]], %[[A]]
// CHECK-NEXT:        "polyblocks.copy"(%[[M]], %[[B]]
// CHECK-NEXT:        "polyblocks.barrier"() {scope = "block"}
// CHECK-NEXT:        "polyblocks.copy"(%[[A]], %[[X]]{{.*}}kind = "fragments"
// CHECK-NEXT:        "polyblocks.copy"(%[[B]], %[[Y]]{{.*}}kind = "fragments"
// CHECK-COUNT-2:     {polyblocks.unit_steps = "mma.m8n8k4"}
// CHECK-NOT:       kind = "asynchronous"
// CHECK:           affine.store
module {
  func.func @main(%a: memref<512x512xf16>, %b: memref<256x512xf16>, %c: memref<512x256xf16>) {
    %zero = arith.constant 0.0 : f32
    affine.for %i = 0 to 512 {
      affine.for %j = 0 to 256 {
        %s = affine.for %k = 0 to 512 iter_args(%t = %zero) -> (f32) {
          %x = affine.load %a[%i, %k] : memref<512x512xf16>
          %y = affine.load %b[%j, %k] : memref<256x512xf16>
          %u = arith.extf %x : f16 to f32
          %v = arith.extf %y : f16 to f32
          %z = arith.mulf %u, %v fastmath<reassoc,contract> : f32
          %w = arith.addf %t, %z fastmath<reassoc,contract> : f32
          affine.yield %w : f32
        }
        %h = arith.truncf %s : f32 to f16
        affine.store %h, %c[%i, %j] : memref<512x256xf16>
      }
    } {polyblocks.schedule = {
         kernel = "product", resident = 1, unit = "mma.m8n8k4", register_tile = [16, 32],
         block_tile = [32, 64], k_block = 32, stages = 2}}
    return
  }
}
