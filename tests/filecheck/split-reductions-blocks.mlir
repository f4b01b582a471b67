// PASSES: split-reductions
// TARGET: gpu
//
// A block would wait for memory: the sum of everything is done in parts. With as many rows as keep
// all multiprocessors at work, it stays.

// CHECK-LABEL: func.func @main
// CHECK:         %[[PARTS:.*]] = memref.alloc() : memref<[[N:[0-9]+]]xf32>
// CHECK:         affine.for %[[C:.*]] = 0 to
// CHECK:           affine.store %{{.*}}, %[[PARTS]][%[[C]]]
// CHECK:         affine.for %{{.*}} = 0 to [[N]] iter_args
// CHECK:           affine.load %[[PARTS]]
// CHECK-NOT:     memref.alloc
// CHECK:         affine.for %{{.*}} = 0 to 100 {
// CHECK-NEXT:      affine.for %{{.*}} = 0 to 400 iter_args
func.func @main(%a: memref<262144xf32>, %b: memref<f32>, %m: memref<100x400xf32>, %r: memref<100xf32>) {
  %z = arith.constant 0.0 : f32
  %s = affine.for %i = 0 to 262144 iter_args(%acc = %z) -> (f32) {
    %x = affine.load %a[%i] : memref<262144xf32>
    %t = arith.addf %acc, %x fastmath<reassoc,contract> : f32
    affine.yield %t : f32
  }
  affine.store %s, %b[] : memref<f32>
  affine.for %j = 0 to 100 {
    %v = affine.for %i = 0 to 400 iter_args(%acc = %z) -> (f32) {
      %x = affine.load %m[%j, %i] : memref<100x400xf32>
      %t = arith.addf %acc, %x fastmath<reassoc,contract> : f32
      affine.yield %t : f32
    }
    affine.store %v, %r[%j] : memref<100xf32>
  }
  return
}
