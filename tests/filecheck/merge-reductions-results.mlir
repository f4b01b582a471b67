// PASSES: classify-nests,merge-reductions
//
// Sums of columns of the same argument are taken in one sweep; not with one that needs
// another sum, nor where much is computed of each element.

// CHECK-LABEL: func.func @main
// CHECK:         arith.maximumf
// CHECK:         affine.for %[[J:.*]] = 0 to 81 {
// CHECK:           %[[R:.*]]:2 = affine.for %[[I:.*]] = 0 to 500 iter_args
// CHECK:             %[[X:.*]] = affine.load %arg0[%[[I]], %[[J]]]
// CHECK-NOT:         affine.load %arg0
// CHECK:           affine.store %[[R]]#0, %arg2[%[[J]]]
// CHECK:           affine.store %[[R]]#1, %arg3[%[[J]]]
// CHECK:         affine.for %{{.*}} = 0 to 81 {
// CHECK:           %{{[0-9]+}} = affine.for %{{.*}} = 0 to 500 iter_args
// CHECK:           affine.store %{{.*}}, %arg4
// CHECK:         affine.for %{{.*}} = 0 to 81 {
// CHECK:           affine.for %{{.*}} = 0 to 500 iter_args
// CHECK:           affine.store %{{.*}}, %arg5
func.func @main(%a: memref<500x81xf32>, %b: memref<500x81xf32>, %c: memref<81xf32>,
                %d: memref<81xf32>, %e: memref<81xf32>, %f: memref<81xf32>, %g: memref<81xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %j = 0 to 81 {
    %r = affine.for %i = 0 to 500 iter_args(%t = %zero) -> (f32) {
      %x = affine.load %b[%i, %j] : memref<500x81xf32>
      %u = arith.maximumf %t, %x : f32
      affine.yield %u : f32
    }
    affine.store %r, %g[%j] : memref<81xf32>
  }
  affine.for %j = 0 to 81 {
    %r = affine.for %i = 0 to 500 iter_args(%t = %zero) -> (f32) {
      %x = affine.load %a[%i, %j] : memref<500x81xf32>
      %u = arith.addf %t, %x fastmath<reassoc> : f32
      affine.yield %u : f32
    }
    affine.store %r, %c[%j] : memref<81xf32>
  }
  affine.for %j = 0 to 81 {
    %r = affine.for %i = 0 to 500 iter_args(%t = %zero) -> (f32) {
      %x = affine.load %a[%i, %j] : memref<500x81xf32>
      %y = affine.load %b[%i, %j] : memref<500x81xf32>
      %z = arith.mulf %x, %y fastmath<reassoc> : f32
      %u = arith.addf %t, %z fastmath<reassoc> : f32
      affine.yield %u : f32
    }
    affine.store %r, %d[%j] : memref<81xf32>
  }
  affine.for %j = 0 to 81 {
    %m = affine.load %g[%j] : memref<81xf32>
    %r = affine.for %i = 0 to 500 iter_args(%t = %zero) -> (f32) {
      %x = affine.load %a[%i, %j] : memref<500x81xf32>
      %z = arith.mulf %x, %m fastmath<reassoc> : f32
      %u = arith.addf %t, %z fastmath<reassoc> : f32
      affine.yield %u : f32
    }
    affine.store %r, %e[%j] : memref<81xf32>
  }
  affine.for %j = 0 to 81 {
    %r = affine.for %i = 0 to 500 iter_args(%t = %zero) -> (f32) {
      %x = affine.load %a[%i, %j] : memref<500x81xf32>
      %y = math.exp %x : f32
      %z = math.log %y : f32
      %u = arith.addf %t, %z fastmath<reassoc> : f32
      affine.yield %u : f32
    }
    affine.store %r, %f[%j] : memref<81xf32>
  }
  return
}
