// PASSES: vectorize-nests
// ARCH: x86-64-v4
//
// The columns of a register tile lie in panels that come from memory, each of which all tiles of rows
// use: with every step a tile fetches a line of the same step of the next panel, which is another
// line for the next tile.

// CHECK:       #[[LINE:.*]] = affine_map<(d0) -> ((d0 mod 2) * 16)>
// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[PANEL:.*]] = 0 to 64 {
// CHECK:           affine.for %[[I:.*]] = 0 to 4 {
// CHECK:             affine.for %[[K:.*]] = 0 to 256 iter_args(
// CHECK:               %[[NEXT:.*]] = arith.addi %[[PANEL]], %c1
// CHECK:               %[[PLACE:.*]] = affine.apply #[[LINE]](%[[I]])
// CHECK:               memref.prefetch %arg1[%[[NEXT]], %[[K]], %[[PLACE]]], read, locality<2>, data
// CHECK-NOT:           memref.prefetch
// CHECK:               vector.load %arg1[%[[PANEL]], %[[K]], %{{.*}}] : memref<64x256x32xf32>, vector<32xf32>

module {
  func.func @main(%a: memref<8x256xf32>, %b: memref<64x256x32xf32>, %c: memref<8x2048xf32>) {
    affine.for %panel = 0 to 64 {
      affine.for %j = 0 to 32 {
        affine.for %i = 0 to 4 {
          %z = arith.constant 0.0 : f32
          %r:2 = affine.for %k = 0 to 256 iter_args(%s = %z, %t = %z) -> (f32, f32) {
            %y = affine.load %b[%panel, %k, %j] : memref<64x256x32xf32>
            %x0 = affine.load %a[%i * 2, %k] : memref<8x256xf32>
            %p0 = arith.mulf %x0, %y fastmath<contract> : f32
            %s0 = arith.addf %s, %p0 fastmath<contract> : f32
            %x1 = affine.load %a[%i * 2 + 1, %k] : memref<8x256xf32>
            %p1 = arith.mulf %x1, %y fastmath<contract> : f32
            %s1 = arith.addf %t, %p1 fastmath<contract> : f32
            affine.yield %s0, %s1 : f32, f32
          }
          affine.store %r#0, %c[%i * 2, %panel * 32 + %j] : memref<8x2048xf32>
          affine.store %r#1, %c[%i * 2 + 1, %panel * 32 + %j] : memref<8x2048xf32>
        }
      } {polyblocks.lanes = 32 : i64}
    }
    return
  }
}
