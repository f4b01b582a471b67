// PASSES: inline-stacks
//
// Colours and how well they are known, in one array that two nests read: both are computed where
// they are read, and where the slab is known that one alone. What one nest reads stays.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[C:.*]] = 0 to 4 {
// CHECK:           affine.for %[[X:.*]] = 0 to 4194304 {
// CHECK:             %[[A:.*]] = affine.load %{{.*}}[%[[C]] - (%[[C]] + 1) floordiv 4, %[[X]]] : memref<3x4194304xf32>
// CHECK:             %[[K:.*]] = affine.load %{{.*}}[%[[X]]] : memref<4194304xf32>
// CHECK:             %[[M:.*]] = arith.mulf %[[A]], %[[K]] : f32
// CHECK:             %[[IN:.*]] = arith.cmpi slt
// CHECK:             arith.select %[[IN]], %[[M]], %[[K]] : f32
// CHECK-NOT:         arith.select
// CHECK:         affine.for %{{.*}} = 0 to 4194304 {
// CHECK-NEXT:      affine.load %{{.*}}[%{{.*}}] : memref<4194304xf32>
// CHECK-NEXT:      arith.negf
// CHECK:         affine.store %{{.*}}, %{{.*}}[0, %{{.*}}] : memref<2x4194304xf32>
// CHECK:         affine.store %{{.*}}, %{{.*}}[1, %{{.*}}] : memref<2x4194304xf32>
func.func @main(%a: memref<3x4194304xf32>, %k: memref<4194304xf32>, %b: memref<4x4194304xf32>,
                %d: memref<4194304xf32>, %e: memref<2x4194304xf32>) {
  %s = memref.alloc() : memref<4x4194304xf32>
  %t = memref.alloc() : memref<2x4194304xf32>
  affine.for %c = 0 to 3 {
    affine.for %x = 0 to 4194304 {
      %v = affine.load %a[%c, %x] : memref<3x4194304xf32>
      %w = affine.load %k[%x] : memref<4194304xf32>
      %m = arith.mulf %v, %w : f32
      affine.store %m, %s[%c, %x] : memref<4x4194304xf32>
    }
  }
  affine.for %x = 0 to 4194304 {
    %w = affine.load %k[%x] : memref<4194304xf32>
    affine.store %w, %s[3, %x] : memref<4x4194304xf32>
  }
  affine.for %c = 0 to 4 {
    affine.for %x = 0 to 4194304 {
      %v = affine.load %s[%c, %x] : memref<4x4194304xf32>
      %w = affine.load %s[3, %x] : memref<4x4194304xf32>
      %q = arith.addf %v, %w : f32
      affine.store %q, %b[%c, %x] : memref<4x4194304xf32>
    }
  }
  affine.for %x = 0 to 4194304 {
    %w = affine.load %s[3, %x] : memref<4x4194304xf32>
    %q = arith.negf %w : f32
    affine.store %q, %d[%x] : memref<4194304xf32>
  }
  affine.for %x = 0 to 4194304 {
    %w = affine.load %k[%x] : memref<4194304xf32>
    affine.store %w, %t[0, %x] : memref<2x4194304xf32>
  }
  affine.for %x = 0 to 4194304 {
    %w = affine.load %d[%x] : memref<4194304xf32>
    affine.store %w, %t[1, %x] : memref<2x4194304xf32>
  }
  affine.for %c = 0 to 2 {
    affine.for %x = 0 to 4194304 {
      %v = affine.load %t[%c, %x] : memref<2x4194304xf32>
      %q = arith.negf %v : f32
      affine.store %q, %e[%c, %x] : memref<2x4194304xf32>
    }
  }
  return
}
