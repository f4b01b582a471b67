// PASSES: order-loops
//
// A matrix product walks one operand by columns: the column loop goes inside, with an array of
// accumulators. A sum along rows is in order already.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %{{.*}} = 0 to 32 {
// CHECK:           %[[ACC:.*]] = memref.alloca() {alignment = 64 : i64} : memref<64xf32>
// CHECK:           affine.for %{{.*}} = 0 to 64 {
// CHECK:             affine.store %{{.*}}, %[[ACC]]
// CHECK:           affine.for %[[K:.*]] = 0 to 128 {
// CHECK-NEXT:        affine.for %[[J:.*]] = 0 to 64 {
// CHECK:               affine.load %[[ACC]][%[[J]]]
// CHECK:               affine.load %{{.*}}[%[[K]], %[[J]]]
// CHECK:               affine.store %{{.*}}, %[[ACC]][%[[J]]]
// CHECK:           affine.for %{{.*}} = 0 to 64 {
// CHECK:             affine.load %[[ACC]]
// CHECK:         affine.for
// CHECK:           affine.for %{{.*}} = 0 to 128 iter_args
func.func @main(%a: memref<32x128xf32>, %b: memref<128x64xf32>, %c: memref<32x64xf32>, %s: memref<32xf32>) {
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
  return
}
