// PASSES: block-summation
//
// A long sum becomes a sum of sums of blocks, the last of which is shorter; a sum over two loops
// starts anew for every row. A maximum stays.

// CHECK-DAG:   #[[MANY:.*]] = affine_map<(d0) -> (d0 * -16 + 25, 16)>
// CHECK-DAG:   #[[END:.*]] = affine_map<(d0, d1) -> (d0 * -65536 - d1 * 4096 + 100000, 4096)>
// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[A:.*]] = 0 to 2 iter_args(%[[R:.*]] = %arg4) -> (f32) {
// CHECK:           affine.for %[[B:.*]] = 0 to min #[[MANY]](%[[A]]) iter_args(%[[S:.*]] = %{{.*}}) -> (f32) {
// CHECK-NEXT:        %[[ZERO:.*]] = arith.constant -0.000000e+00 : f32
// CHECK-NEXT:        %[[P:.*]] = affine.for %[[K:.*]] = 0 to min #[[END]](%[[A]], %[[B]]) iter_args(%[[T:.*]] = %[[ZERO]])
// CHECK-NEXT:          affine.load %arg0[%[[A]] * 65536 + %[[B]] * 4096 + %[[K]]]
// CHECK:             arith.addf %[[S]], %[[P]]
// CHECK:         affine.for %[[I:.*]] = 0 to 12 iter_args(%[[S:.*]] = %arg4) -> (f32) {
// CHECK:           %[[P:.*]] = affine.for %[[K:.*]] = 0 to 128 iter_args(%{{.*}} = %{{.*}})
// CHECK:           arith.addf %[[S]], %[[P]]
// CHECK:         affine.for %{{.*}} = 0 to 100000 iter_args
// CHECK-NEXT:      affine.load
// CHECK-NEXT:      arith.maximumf
func.func @main(%a: memref<100000xf32>, %b: memref<12x128xf32>, %c: memref<f32>, %d: memref<f32>, %z: f32) {
  %s = affine.for %i = 0 to 100000 iter_args(%acc = %z) -> (f32) {
    %x = affine.load %a[%i] : memref<100000xf32>
    %t = arith.addf %acc, %x fastmath<reassoc,contract> : f32
    affine.yield %t : f32
  }
  affine.store %s, %c[] : memref<f32>
  %u = affine.for %i = 0 to 12 iter_args(%acc = %z) -> (f32) {
    %v = affine.for %j = 0 to 128 iter_args(%inner = %acc) -> (f32) {
      %x = affine.load %b[%i, %j] : memref<12x128xf32>
      %t = arith.addf %inner, %x fastmath<reassoc,contract> : f32
      affine.yield %t : f32
    }
    affine.yield %v : f32
  }
  affine.store %u, %d[] : memref<f32>
  %m = affine.for %i = 0 to 100000 iter_args(%acc = %z) -> (f32) {
    %x = affine.load %a[%i] : memref<100000xf32>
    %t = arith.maximumf %acc, %x : f32
    affine.yield %t : f32
  }
  affine.store %m, %c[] : memref<f32>
  return
}
