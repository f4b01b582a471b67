// PASSES: plan-contractions,tile-contractions,expand-packing
// ARCH: x86-64-v3
//
// Lanes go along the side that is stored side by side: here that of the first operand. Where
// neither side is, since a batch is, results wait in a buffer, from which they are stored one by
// one.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[LANE:.*]] = 0 to 16 {
// CHECK:           affine.for %{{.*}} = 0 to 100 iter_args
// CHECK:           affine.store %{{.*}}, %arg2[%{{.*}}, {{.*}}%[[LANE]]{{.*}}] : memref<64x48xf32>
// CHECK:         {polyblocks.lanes = 16 : i64}
// CHECK:         %[[WAIT:.*]] = memref.alloca()
// CHECK:         affine.for %[[LANE:.*]] = 0 to 16 {
// CHECK:           affine.for %{{.*}} = 0 to 100 iter_args
// CHECK:           affine.store %{{.*}}, %[[WAIT]][%{{.*}}, %{{.*}} + %[[LANE]]]
// CHECK:         {polyblocks.lanes = 16 : i64}
// CHECK-NOT:     polyblocks.lanes
// CHECK:         affine.load %[[WAIT]]
// CHECK:         affine.store %{{.*}} : memref<48x64x4xf32>
func.func @main(%a: memref<100x48xf32>, %b: memref<64x100xf32>, %c: memref<64x48xf32>,
                %d: memref<4x48x100xf32>, %e: memref<4x100x64xf32>, %f: memref<48x64x4xf32>) {
  %z = arith.constant 0.0 : f32
  affine.for %i = 0 to 48 { affine.for %j = 0 to 64 {
    %r = affine.for %k = 0 to 100 iter_args(%s = %z) -> (f32) {
      %x = affine.load %a[%k, %i] : memref<100x48xf32>
      %y = affine.load %b[%j, %k] : memref<64x100xf32>
      %p = arith.mulf %x, %y fastmath<reassoc,contract> : f32
      %t = arith.addf %s, %p fastmath<reassoc,contract> : f32
      affine.yield %t : f32
    }
    affine.store %r, %c[%j, %i] : memref<64x48xf32>
  } }
  affine.for %h = 0 to 4 { affine.for %i = 0 to 48 { affine.for %j = 0 to 64 {
    %r = affine.for %k = 0 to 100 iter_args(%s = %z) -> (f32) {
      %x = affine.load %d[%h, %i, %k] : memref<4x48x100xf32>
      %y = affine.load %e[%h, %k, %j] : memref<4x100x64xf32>
      %p = arith.mulf %x, %y fastmath<reassoc,contract> : f32
      %t = arith.addf %s, %p fastmath<reassoc,contract> : f32
      affine.yield %t : f32
    }
    affine.store %r, %f[%i, %j, %h] : memref<48x64x4xf32>
  } } }
  return
}
