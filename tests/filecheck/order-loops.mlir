// PASSES: order-loops
//
// A matrix product walks one operand by columns: the column loop goes inside, with an array of
// accumulators, and eight rows are taken at a time; what is carried is added to their sum, and no
// flag lets it be put in front of the chain. A sum along rows is in order already. A long sum
// along columns is done in blocks of 128 rows, and then the rows that are left.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[I:.*]] = 0 to 32 {
// CHECK:           %[[ACC:.*]] = memref.alloca() {alignment = 64 : i64} : memref<64xf32>
// CHECK:           affine.for %{{.*}} = 0 to 64 {
// CHECK:             affine.store %{{.*}}, %[[ACC]]
// CHECK:           affine.for %[[K:.*]] = 0 to 16 {
// CHECK-NEXT:        affine.for %[[J:.*]] = 0 to 64 {
// CHECK:               %[[OLD:.*]] = affine.load %[[ACC]][%[[J]]]
// CHECK:               affine.load %{{.*}}[%[[K]] * 8, %[[J]]]
// CHECK:               affine.load %{{.*}}[%[[K]] * 8 + 7, %[[J]]]
// CHECK:               arith.addf %[[OLD]], %{{[0-9a-z_]+}} : f32
// CHECK:               affine.store %{{.*}}, %[[ACC]][%[[J]]]
// CHECK:           affine.for %{{.*}} = 0 to 64 {
// CHECK:             affine.load %[[ACC]]
// CHECK:         affine.for
// CHECK:           affine.for %{{.*}} = 0 to 128 iter_args
// CHECK:         affine.for %[[S:.*]] = 0 to 4 {
// CHECK:           %[[SUM:.*]] = memref.alloca() {alignment = 64 : i64} : memref<1024xf32>
// CHECK:           %[[PART:.*]] = memref.alloca() {alignment = 64 : i64} : memref<1024xf32>
// CHECK:           affine.for %[[B:.*]] = 0 to 7 {
// CHECK:             %[[ZERO:.*]] = arith.constant -0.000000e+00
// CHECK:             affine.store %[[ZERO]], %[[PART]]
// CHECK:             affine.for %[[R:.*]] = 0 to 16 {
// CHECK:               affine.for %{{.*}} = 0 to min #{{.*}}(%[[S]]) {
// CHECK:                 affine.load %{{.*}}[%[[B]] * 128 + %[[R]] * 8 + 7,
// CHECK:             affine.load %[[SUM]]
// CHECK:             affine.load %[[PART]]
// CHECK:             affine.store %{{.*}}, %[[SUM]]
// CHECK:           affine.for %[[R:.*]] = 0 to 13 {
// CHECK:             affine.load %{{.*}}[%[[R]] * 8 + 896, %[[S]] * 1024 + %{{.*}}]
// CHECK:           affine.load %{{.*}}[1003, %[[S]] * 1024 + %{{.*}}]
func.func @main(%a: memref<32x128xf32>, %b: memref<128x64xf32>, %c: memref<32x64xf32>, %s: memref<32xf32>,
                %d: memref<1004x4000xf32>, %e: memref<4000xf32>) {
  affine.for %i = 0 to 32 {
    affine.for %j = 0 to 64 {
      %z = arith.constant 0.0 : f32
      %r = affine.for %k = 0 to 128 iter_args(%acc = %z) -> (f32) {
        %x = affine.load %a[%i, %k] : memref<32x128xf32>
        %y = affine.load %b[%k, %j] : memref<128x64xf32>
        %m = arith.mulf %x, %y fastmath<reassoc,contract> : f32
        %t = arith.addf %acc, %m fastmath<reassoc,contract> : f32
        affine.yield %t : f32
      }
      affine.store %r, %c[%i, %j] : memref<32x64xf32>
    }
  }
  affine.for %i = 0 to 32 {
    %z = arith.constant 0.0 : f32
    %r = affine.for %k = 0 to 128 iter_args(%acc = %z) -> (f32) {
      %x = affine.load %a[%i, %k] : memref<32x128xf32>
      %t = arith.addf %acc, %x fastmath<reassoc,contract> : f32
      affine.yield %t : f32
    }
    affine.store %r, %s[%i] : memref<32xf32>
  }
  affine.for %i = 0 to 4000 {
    %z = arith.constant 0.0 : f32
    %r = affine.for %k = 0 to 1004 iter_args(%acc = %z) -> (f32) {
      %x = affine.load %d[%k, %i] : memref<1004x4000xf32>
      %t = arith.addf %acc, %x fastmath<reassoc,contract> : f32
      affine.yield %t : f32
    }
    affine.store %r, %e[%i] : memref<4000xf32>
  }
  return
}
