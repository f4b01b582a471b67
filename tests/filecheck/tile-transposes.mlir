// PASSES: tile-transposes
//
// A transposition is done in squares as long as a vector, and what is left in nests of its own, the
// larger part of it in smaller squares. A nest whose accesses agree gets their loop inside; one that is in order stays.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %{{.*}} = 0 to 3 {
// CHECK-NEXT:      affine.for %{{.*}} = 0 to min
// CHECK-NEXT:        affine.for %{{.*}} = 0 to 8 {
// CHECK-NEXT:          affine.for %{{.*}} = 0 to 16 {
// CHECK-NEXT:            affine.for %{{.*}} = 0 to 16 {
// CHECK-NEXT:              affine.load
// CHECK-NEXT:              affine.store
// CHECK:         affine.for %{{.*}} = 0 to 4 {
// CHECK-NEXT:      affine.for %{{.*}} = 0 to 8 {
// CHECK-NEXT:        affine.for %{{.*}} = 0 to 4 {
// CHECK-NEXT:          affine.for %[[R:.*]] = 0 to 4 {
// CHECK-NEXT:            affine.load %{{.*}}[%{{.*}}, %{{.*}} + 320]
// CHECK:         affine.for %[[R:.*]] = 0 to 3 {
// CHECK-NEXT:      affine.for %[[C:.*]] = 0 to 128 {
// CHECK-NEXT:        affine.load %{{.*}}[%[[C]], %[[R]] + 324]
//
// CHECK:         affine.for %[[J:.*]] = 0 to 50 {
// CHECK-NEXT:      affine.for %[[I:.*]] = 0 to 40 {
// CHECK-NEXT:        affine.load %{{.*}}[%[[I]], %[[J]]]
//
// CHECK:         affine.for %[[I:.*]] = 0 to 327 {
// CHECK-NEXT:      affine.for %[[J:.*]] = 0 to 128 {
// CHECK-NEXT:        affine.load %{{.*}}[%[[I]], %[[J]]]
func.func @main(%a: memref<128x327xf32>, %b: memref<327x128xf32>, %s: memref<40x50xf32, strided<[1, 40]>>, %t: memref<40x50xf32, strided<[1, 40]>>, %c: memref<327x128xf32>) {
  affine.for %i = 0 to 327 {
    affine.for %j = 0 to 128 {
      %x = affine.load %a[%j, %i] : memref<128x327xf32>
      affine.store %x, %b[%i, %j] : memref<327x128xf32>
    }
  }
  affine.for %i = 0 to 40 {
    affine.for %j = 0 to 50 {
      %x = affine.load %s[%i, %j] : memref<40x50xf32, strided<[1, 40]>>
      affine.store %x, %t[%i, %j] : memref<40x50xf32, strided<[1, 40]>>
    }
  }
  affine.for %i = 0 to 327 {
    affine.for %j = 0 to 128 {
      %x = affine.load %b[%i, %j] : memref<327x128xf32>
      %y = arith.negf %x : f32
      affine.store %y, %c[%i, %j] : memref<327x128xf32>
    }
  }
  return
}
