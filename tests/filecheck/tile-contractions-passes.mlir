// PASSES: plan-contractions,tile-contractions,expand-packing
// ARCH: x86-64-v3
//
// Few rows and columns of many steps: all results of a piece wait while both operands go by once, in
// passes of so many steps as have room beside them.

// CHECK-LABEL: func.func @main
// CHECK:         affine.parallel (%[[T:.*]]) = (0) to (8) {
// CHECK:           %[[ROWS:.*]] = memref.alloca() {{.*}} : memref<327x48xf32>
// CHECK:           %[[PANELS:.*]] = memref.alloca() {{.*}} : memref<3x327x16xf32>
// CHECK:           %[[RESULTS:.*]] = memref.alloca() {{.*}} : memref<48x48xf32>
// CHECK:           affine.for %[[PASS:.*]] = 0 to 49 {
// CHECK:             affine.load %arg1[%[[PASS]] * 327 +
// CHECK-NEXT:        affine.store %{{.*}}, %[[PANELS]][
// CHECK:             affine.load %arg0[%[[PASS]] * 327 +
// CHECK-NEXT:        affine.store %{{.*}}, %[[ROWS]][
// CHECK:             affine.store %{{.*}}, %[[RESULTS]][
// CHECK:             {polyblocks.lanes = 16 : i64}
// CHECK-NOT:       affine.load %arg0[
// CHECK-NOT:       affine.load %arg1[
// CHECK:           affine.load %[[RESULTS]][
// CHECK:           affine.store %{{.*}}, %arg2[
// CHECK:         {polyblocks.level = "team"}

module {
  func.func @main(%a: memref<16000x192xf32>, %b: memref<16000x96xf32>, %c: memref<192x96xf32>) {
    %z = arith.constant 0.0 : f32
    affine.for %i = 0 to 192 {
      affine.for %j = 0 to 96 {
        %r = affine.for %k = 0 to 16000 iter_args(%s = %z) -> (f32) {
          %x = affine.load %a[%k, %i] : memref<16000x192xf32>
          %y = affine.load %b[%k, %j] : memref<16000x96xf32>
          %p = arith.mulf %x, %y fastmath<reassoc,contract> : f32
          %t = arith.addf %s, %p fastmath<reassoc,contract> : f32
          affine.yield %t : f32
        }
        affine.store %r, %c[%i, %j] : memref<192x96xf32>
      }
    }
    return
  }
}
