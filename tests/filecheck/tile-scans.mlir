// PASSES: form-scans,tile-scans
//
// A recurrence along rows goes along sixteen rows at a time, through tiles; the last rows go one by
// one. Sums, which can be split, stay as they are, and so do few rows.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[T:.*]] = 0 to 2 {
// CHECK:           memref.alloca() {{.*}} : memref<16xf32>
// CHECK:           memref.alloca() {{.*}} : memref<16x16xf32>
// CHECK:           affine.for %{{.*}} = 0 to 3 {
// CHECK:             affine.for %[[S:.*]] = 0 to 16 {
// CHECK-NEXT:          affine.for %[[R:.*]] = 0 to 16 {
// CHECK-NEXT:            %[[X:.*]] = affine.load %{{.*}}[%[[T]] * 16 + %[[R]], %{{.*}} * 16 + %[[S]]]
// CHECK-NEXT:            affine.store %[[X]], %[[IN:.*]][%[[S]], %[[R]]]
// CHECK:             affine.for %[[L:.*]] = 0 to 16 {
// CHECK:               affine.for %[[K:.*]] = 0 to 16 iter_args(
// CHECK-NEXT:            affine.load %[[IN]][%[[K]], %[[L]]]
// CHECK:           affine.for %{{.*}} = 0 to 5 iter_args(
// CHECK:         affine.for %{{.*}} = 0 to 3 {
// CHECK:           affine.for %{{.*}} = 0 to 53 iter_args(
//
// CHECK:         affine.for %{{.*}} = 0 to 35 {
// CHECK:           affine.for %{{.*}} = 0 to 53 iter_args(
//
// CHECK:         affine.for %{{.*}} = 0 to 20 {
// CHECK:           affine.for %{{.*}} = 0 to 53 iter_args(
func.func @main(%a: memref<35x53xf32>, %s: memref<35xf32>, %b: memref<35x53xf32>, %t: memref<35xf32>, %c: memref<35x53xf32>, %d: memref<20x53xf32>, %u: memref<20xf32>, %e: memref<20x53xf32>) {
  affine.for %i = 0 to 35 {
    affine.for %k = 0 to 53 {
      %0 = affine.load %s[%i] : memref<35xf32>
      %x = affine.load %a[%i, %k] : memref<35x53xf32>
      %1 = arith.mulf %0, %x : f32
      %2 = arith.addf %1, %x : f32
      affine.store %2, %b[%i, %k] : memref<35x53xf32>
      affine.store %2, %s[%i] : memref<35xf32>
    }
  }
  affine.for %i = 0 to 35 {
    affine.for %k = 0 to 53 {
      %0 = affine.load %t[%i] : memref<35xf32>
      %x = affine.load %a[%i, %k] : memref<35x53xf32>
      %1 = arith.addf %0, %x fastmath<reassoc> : f32
      affine.store %1, %c[%i, %k] : memref<35x53xf32>
      affine.store %1, %t[%i] : memref<35xf32>
    }
  }
  affine.for %i = 0 to 20 {
    affine.for %k = 0 to 53 {
      %0 = affine.load %u[%i] : memref<20xf32>
      %x = affine.load %d[%i, %k] : memref<20x53xf32>
      %1 = arith.mulf %0, %x : f32
      %2 = arith.addf %1, %x : f32
      affine.store %2, %e[%i, %k] : memref<20x53xf32>
      affine.store %2, %u[%i] : memref<20xf32>
    }
  }
  return
}
