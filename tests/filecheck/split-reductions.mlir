// PASSES: split-reductions
//
// A sum over everything is done in parts, with a tail, and joined. An arg-max-like reduction looks
// at its own value and stays; so does a sum with enough rows around it.

// CHECK-LABEL: func.func @main
// CHECK:         %[[PARTS:.*]] = memref.alloc() : memref<[[N:[0-9]+]]xf32>
// CHECK:         affine.for %[[C:.*]] = 0 to
// CHECK-NEXT:      %[[ZERO:.*]] = arith.constant -0.000000e+00 : f32
// CHECK-NEXT:      %[[P:.*]] = affine.for %{{.*}} iter_args(%{{.*}} = %[[ZERO]])
// CHECK:           affine.store %[[P]], %[[PARTS]][%[[C]]]
// CHECK:         affine.for %{{.*}} = 0 to 1 {
// CHECK:           affine.store %{{.*}}, %[[PARTS]]
// CHECK:         affine.for %[[J:.*]] = 0 to [[N]] iter_args
// CHECK:           affine.load %[[PARTS]][%[[J]]]
// CHECK:         affine.for %{{.*}} = 0 to 1000003 iter_args
// CHECK:           arith.subf
// CHECK:         affine.for %{{.*}} = 0 to 1000 {
// CHECK:           affine.for %{{.*}} = 0 to 1000 iter_args
func.func @main(%a: memref<1000003xf32>, %b: memref<f32>, %m: memref<1000x1000xf32>, %r: memref<1000xf32>) {
  %z = arith.constant 1.0 : f32
  %s = affine.for %i = 0 to 1000003 iter_args(%acc = %z) -> (f32) {
    %x = affine.load %a[%i] : memref<1000003xf32>
    %t = arith.addf %acc, %x fastmath<reassoc,contract> : f32
    affine.yield %t : f32
  }
  affine.store %s, %b[] : memref<f32>
  %u = affine.for %i = 0 to 1000003 iter_args(%acc = %z) -> (f32) {
    %x = affine.load %a[%i] : memref<1000003xf32>
    %t = arith.subf %x, %acc fastmath<reassoc,contract> : f32
    affine.yield %t : f32
  }
  affine.store %u, %b[] : memref<f32>
  affine.for %j = 0 to 1000 {
    %v = affine.for %i = 0 to 1000 iter_args(%acc = %z) -> (f32) {
      %x = affine.load %m[%j, %i] : memref<1000x1000xf32>
      %t = arith.addf %acc, %x fastmath<reassoc,contract> : f32
      affine.yield %t : f32
    }
    affine.store %v, %r[%j] : memref<1000xf32>
  }
  return
}
