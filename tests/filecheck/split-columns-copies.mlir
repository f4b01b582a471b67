// PASSES: split-columns
// ARCH: x86-64-v3
//
// Coordinates of points, which lie between each other in memory, are copied apart before they are
// read for each row; those of rows are not.

// CHECK-LABEL: func.func @main
// CHECK-SAME:    %[[X:[a-z0-9]+]]: memref<256x2xf32>, %[[Y:[a-z0-9]+]]: memref<40000x2xf32>
// CHECK:         affine.for %[[J:.*]] = 0 to 40000 {
// CHECK-NEXT:      affine.load %[[Y]][%[[J]], 0]
// CHECK-NEXT:      affine.store %{{.*}}, %[[APART:.*]][0, %[[J]]] : memref<2x40000xf32>
// CHECK-NEXT:      affine.load %[[Y]][%[[J]], 1]
// CHECK-NEXT:      affine.store %{{.*}}, %[[APART]][1, %[[J]]]
// CHECK:         affine.load %[[X]][%[[I:.*]], 0]
// CHECK-NEXT:    affine.load %[[APART]][0, %[[B:.*]] * [[LENGTH:[0-9]+]] + %[[C:.*]]]
// CHECK:         affine.load %[[X]][%[[I]], 1]
// CHECK-NEXT:    affine.load %[[APART]][1, %[[B]] * [[LENGTH]] + %[[C]]]
// CHECK:         arith.maximumf
func.func @main(%x: memref<256x2xf32>, %y: memref<40000x2xf32>, %out: memref<256xf32>) {
  %low = arith.constant 0xFF800000 : f32
  %all = memref.alloc() : memref<256x40000xf32>
  affine.for %i = 0 to 256 {
    affine.for %j = 0 to 40000 {
      %a = affine.load %x[%i, 0] : memref<256x2xf32>
      %b = affine.load %y[%j, 0] : memref<40000x2xf32>
      %p = arith.mulf %a, %b fastmath<reassoc,contract> : f32
      %c = affine.load %x[%i, 1] : memref<256x2xf32>
      %d = affine.load %y[%j, 1] : memref<40000x2xf32>
      %q = arith.mulf %c, %d fastmath<reassoc,contract> : f32
      %s = arith.addf %p, %q fastmath<reassoc,contract> : f32
      affine.store %s, %all[%i, %j] : memref<256x40000xf32>
    }
  }
  affine.for %i = 0 to 256 {
    %r = affine.for %j = 0 to 40000 iter_args(%m = %low) -> (f32) {
      %a = affine.load %all[%i, %j] : memref<256x40000xf32>
      %t = arith.maximumf %m, %a : f32
      affine.yield %t : f32
    }
    affine.store %r, %out[%i] : memref<256xf32>
  }
  return
}
