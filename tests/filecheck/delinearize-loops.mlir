// PASSES: delinearize-loops
// ARCH: x86-64-v4
//
// Rows of all pairs count the elements of two arrays by one number: with a loop for each of them the
// iterations of the inner one are lanes. Digits of a few iterations, loops that are lanes as they are,
// and loops that have no whole number of digits stay.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[I:.*]] = 0 to 100 {
// CHECK-NEXT:      affine.for %[[J:.*]] = 0 to 100 {
// CHECK-NEXT:        affine.load %{{.*}}[%[[I]]] : memref<100xf32>
// CHECK-NEXT:        affine.store %{{.*}}[%[[I]] * 100 + %[[J]], 0] : memref<10000x2xf32>
// CHECK:         affine.for %{{.*}} = 0 to 10000 {
// CHECK-NEXT:      affine.load %{{.*}}[%{{.*}} floordiv 10] : memref<1000xf32>
// CHECK:         affine.for %{{.*}} = 0 to 10000 {
// CHECK-NEXT:      affine.load %{{.*}} : memref<10000xf32>
// CHECK:         affine.for %{{.*}} = 0 to 9999 {
// CHECK-NEXT:      affine.load %{{.*}}[%{{.*}} mod 100] : memref<100xf32>
// CHECK-NOT:     affine.for
func.func @main(%a: memref<100xf32>, %b: memref<10000x2xf32>, %c: memref<1000xf32>, %d: memref<10000xf32>, %e: memref<10000xf32>, %f: memref<9999xf32>) {
  affine.for %t = 0 to 10000 {
    %x = affine.load %a[%t floordiv 100] : memref<100xf32>
    affine.store %x, %b[%t, 0] : memref<10000x2xf32>
  }
  affine.for %t = 0 to 10000 {
    %x = affine.load %c[%t floordiv 10] : memref<1000xf32>
    affine.store %x, %b[%t, 1] : memref<10000x2xf32>
  }
  affine.for %t = 0 to 10000 {
    %x = affine.load %d[%t] : memref<10000xf32>
    affine.store %x, %e[%t] : memref<10000xf32>
  }
  affine.for %t = 0 to 9999 {
    %x = affine.load %a[%t mod 100] : memref<100xf32>
    affine.store %x, %f[%t] : memref<9999xf32>
  }
  return
}
