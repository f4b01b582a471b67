// PASSES: plan-contractions,tile-contractions,expand-packing
// ARCH: x86-64-v3
//
// Rows are jammed and columns are lanes, around the steps. The right operand is copied panel by
// panel, squares of it at a time, since it is transposed; the left one is read where it is. What is
// left of the columns has a tile of its own. A sum of many steps is done in chains of additions.

// CHECK-LABEL: func.func @main
// CHECK:         %[[A:.*]] = memref.reinterpret_cast %arg0
// CHECK:         affine.parallel (%[[T:.*]]) = (0) to (8) {
// CHECK:           %[[PANELS:.*]] = memref.alloca() {alignment = 64 : i64} : memref<3x320x16xf32>
// CHECK:           %[[SUMS:.*]] = memref.alloca() {alignment = 64 : i64} : memref<6x16xf32>
// CHECK:           affine.for %[[SQUARE:.*]] = 0 to {{.*}} {
// CHECK-NEXT:        affine.for %[[STEP:.*]] = 0 to 40 {
// CHECK-NEXT:          affine.for %[[C:.*]] = 0 to 8 {
// CHECK-NEXT:            affine.for %[[R:.*]] = 0 to 8 {
// CHECK-NEXT:              affine.load %arg1[%[[SQUARE]] * 8 + %[[C]] + (%[[T]] mod 2) * 48, %[[R]] + %[[STEP]] * 8]
// CHECK-NEXT:              affine.store %{{.*}}, %[[PANELS]][%[[SQUARE]] floordiv 2, %[[R]] + %[[STEP]] * 8, %[[C]] + (%[[SQUARE]] mod 2) * 8]
// CHECK:           affine.for %{{.*}} = 0 to 320 {
// CHECK:             affine.store %{{.*}}, %[[PANELS]][2,
// CHECK:           affine.for %[[ROWS:.*]] = 0 to 2 {
// CHECK-NEXT:        affine.for %[[PANEL:.*]] = 0 to {{.*}} {
// CHECK-NEXT:          affine.for %[[LANE:.*]] = 0 to 16 {
// CHECK-NEXT:            affine.for %[[TILE:.*]] = 0 to 10 {
// CHECK:                   affine.for %[[CHAIN:.*]] = 0 to 2 {
// CHECK:                     %[[SUM:.*]]:6 = affine.for %[[K:.*]] = 0 to 160 iter_args(
// CHECK-NEXT:                  affine.load %[[PANELS]][%[[PANEL]], %[[CHAIN]] * 160 + %[[K]], %[[LANE]]]
// CHECK-NEXT:                  affine.load %[[A]][%[[ROWS]] * 19200 + %[[TILE]] * 1920 + %[[CHAIN]] * 160 + %[[K]] + (%[[T]] floordiv 2) * 38400]
// CHECK:                       affine.load %[[A]][%[[ROWS]] * 19200 + %[[TILE]] * 1920 + %[[CHAIN]] * 160 + %[[K]] + (%[[T]] floordiv 2) * 38400 + 1600]
// CHECK:                     affine.load %[[SUMS]][5, %[[LANE]]]
// CHECK-NEXT:                arith.addf %{{.*}}, %[[SUM]]#5
// CHECK-NEXT:                affine.store %{{.*}}, %[[SUMS]][5, %[[LANE]]]
// CHECK:                   affine.store %{{.*}}, %arg2[%[[ROWS]] * 60 + %[[TILE]] * 6 + (%[[T]] floordiv 2) * 120 + 5, %[[PANEL]] * 16 + %[[LANE]] + (%[[T]] mod 2) * 48]
// CHECK:               {polyblocks.lanes = 16 : i64}
// CHECK:           affine.for %{{.*}} = 0 to {{.*}} {
// CHECK-NEXT:        affine.for %{{.*}} = 0 to 10 {
// CHECK:             {polyblocks.lanes = 16 : i64}
// CHECK:         {polyblocks.level = "team"}

module {
  func.func @main(%a: memref<480x320xf32>, %b: memref<90x320xf32>, %c: memref<480x90xf32>) {
    %z = arith.constant 0.0 : f32
    affine.for %i = 0 to 480 {
      affine.for %j = 0 to 90 {
        %r = affine.for %k = 0 to 320 iter_args(%s = %z) -> (f32) {
          %x = affine.load %a[%i, %k] : memref<480x320xf32>
          %y = affine.load %b[%j, %k] : memref<90x320xf32>
          %p = arith.mulf %x, %y fastmath<reassoc,contract> : f32
          %t = arith.addf %s, %p fastmath<reassoc,contract> : f32
          affine.yield %t : f32
        }
        affine.store %r, %c[%i, %j] : memref<480x90xf32>
      }
    }
    return
  }
}
