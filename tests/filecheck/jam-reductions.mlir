// PASSES: jam-reductions
//
// Row sums of a large matrix: four rows at a time, as far apart as can be, and the one that is left
// by itself. In a tile the rows are those of the tile. A sum that fits the caches stays. Where more
// is done with a row, only what reads it first is jammed, for neighbours, and the rest follows row
// by row; the row that is left is done as before.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[I:.*]] = 0 to 1000 {
// CHECK:           %[[R:.*]]:4 = affine.for %[[K:.*]] = 0 to 2048 iter_args
// CHECK-DAG:         affine.load %arg0[%[[I]], %[[K]]]
// CHECK-DAG:         affine.load %arg0[%[[I]] + 1000, %[[K]]]
// CHECK-DAG:         affine.load %arg0[%[[I]] + 2000, %[[K]]]
// CHECK-DAG:         affine.load %arg0[%[[I]] + 3000, %[[K]]]
// CHECK-DAG:       affine.store %[[R]]#0, %arg1[%[[I]]]
// CHECK-DAG:       affine.store %[[R]]#3, %arg1[%[[I]] + 3000]
// CHECK:         affine.for %{{.*}} = 0 to 1 {
// CHECK:           affine.for %[[K:.*]] = 0 to 2048 iter_args
// CHECK-NEXT:        affine.load %arg0[4000, %[[K]]]
// CHECK:         affine.for %[[T:.*]] = 0 to 500 {
// CHECK:           affine.for %[[I:.*]] = 0 to 2 {
// CHECK:             affine.for %[[K:.*]] = 0 to 2048 iter_args
// CHECK-DAG:           affine.load %arg0[%[[T]] * 8 + %[[I]], %[[K]]]
// CHECK-DAG:           affine.load %arg0[%[[T]] * 8 + %[[I]] + 6, %[[K]]]
// CHECK:           affine.for %{{.*}} = 0 to 8 {
// CHECK:         affine.for %{{.*}} = 0 to 16 {
// CHECK-NEXT:      affine.for %{{.*}} = 0 to 2048 iter_args(%{{.*}} = %{{.*}}) -> (f32) {
// CHECK:         affine.for %[[I:.*]] = 0 to 1000 {
// CHECK:           %[[MAX:.*]] = memref.alloca() {{.*}} : memref<4xf32>
// CHECK:           %[[R:.*]]:4 = affine.for
// CHECK-DAG:         affine.load %arg0[%[[I]] * 4 + 3, %{{.*}}]
// CHECK:           affine.store %[[R]]#3, %[[MAX]][3]
// CHECK:           affine.for %[[K:.*]] = 0 to 4 {
// CHECK:             %[[OWN:.*]] = memref.alloca() {{.*}} : memref<2048xf32>
// CHECK:             affine.load %[[MAX]][%[[K]]]
// CHECK:             affine.for %[[J:.*]] = 0 to 2048 {
// CHECK:               affine.load %arg0[%[[I]] * 4 + %[[K]], %[[J]]]
// CHECK:               affine.store %{{.*}}, %[[OWN]][%[[J]]]
// CHECK:             affine.for
// CHECK:               affine.store %{{.*}}, %arg4[%[[I]] * 4 + %[[K]], %{{.*}}]
// CHECK:         affine.for %{{.*}} = 0 to 1 {
// CHECK:           affine.store %{{.*}}, %arg4[4000, %{{.*}}]
func.func @main(%a: memref<4001x2048xf32>, %b: memref<4001xf32>, %c: memref<16x2048xf32>, %d: memref<16xf32>,
                %e: memref<4001x2048xf32>) {
  %z = arith.constant 0.0 : f32
  affine.for %i = 0 to 4001 {
    %r = affine.for %k = 0 to 2048 iter_args(%acc = %z) -> (f32) {
      %x = affine.load %a[%i, %k] : memref<4001x2048xf32>
      %t = arith.addf %acc, %x fastmath<reassoc,contract> : f32
      affine.yield %t : f32
    }
    affine.store %r, %b[%i] : memref<4001xf32>
  }
  affine.for %t = 0 to 500 {
    %s = memref.alloca() : memref<8xf32>
    affine.for %i = 0 to 8 {
      %r = affine.for %k = 0 to 2048 iter_args(%acc = %z) -> (f32) {
        %x = affine.load %a[8 * %t + %i, %k] : memref<4001x2048xf32>
        %m = arith.maximumf %acc, %x : f32
        affine.yield %m : f32
      }
      affine.store %r, %s[%i] : memref<8xf32>
    }
    affine.for %i = 0 to 8 {
      %x = affine.load %s[%i] : memref<8xf32>
      affine.store %x, %b[8 * %t + %i] : memref<4001xf32>
    }
  } {polyblocks.tile}
  affine.for %i = 0 to 16 {
    %r = affine.for %k = 0 to 2048 iter_args(%acc = %z) -> (f32) {
      %x = affine.load %c[%i, %k] : memref<16x2048xf32>
      %t = arith.addf %acc, %x fastmath<reassoc,contract> : f32
      affine.yield %t : f32
    }
    affine.store %r, %d[%i] : memref<16xf32>
  }
  affine.for %i = 0 to 4001 {
    %own = memref.alloca() : memref<2048xf32>
    %r = affine.for %k = 0 to 2048 iter_args(%acc = %z) -> (f32) {
      %x = affine.load %a[%i, %k] : memref<4001x2048xf32>
      %m = arith.maximumf %acc, %x : f32
      affine.yield %m : f32
    }
    affine.for %k = 0 to 2048 {
      %x = affine.load %a[%i, %k] : memref<4001x2048xf32>
      %t = arith.subf %x, %r : f32
      affine.store %t, %own[%k] : memref<2048xf32>
    }
    affine.for %k = 0 to 2048 {
      %x = affine.load %own[%k] : memref<2048xf32>
      affine.store %x, %e[%i, %k] : memref<4001x2048xf32>
    }
  }
  return
}
