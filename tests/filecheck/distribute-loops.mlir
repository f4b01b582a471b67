// PASSES: distribute-loops
//
// Two stores that compute nothing in common; two that share a sum; one of what the other reads.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for
// CHECK-NEXT:      affine.load %arg0
// CHECK-NEXT:      affine.store %{{.*}}, %arg2
// CHECK-NEXT:    }
// CHECK:         affine.for
// CHECK-NEXT:      affine.load %arg1
// CHECK-NEXT:      affine.store %{{.*}}, %arg3
// CHECK-NEXT:    }
// CHECK:         affine.for
// CHECK:           arith.addf
// CHECK:           affine.store %{{.*}}, %arg4
// CHECK-NEXT:      affine.store %{{.*}}, %arg5
// CHECK:         affine.for
// CHECK-NEXT:      affine.load %arg2
// CHECK-NEXT:      affine.load %arg3
// CHECK-NEXT:      arith.sitofp
// CHECK-NEXT:      affine.store %{{.*}}, %arg3
// CHECK-NEXT:      affine.store %{{.*}}, %arg6

func.func @main(%a: memref<10xi64>, %b: memref<10xf32>, %c: memref<10xi64>, %d: memref<10xf32>,
                %e: memref<10xf32>, %f: memref<10xf32>, %g: memref<10xf32>) {
  affine.for %i = 0 to 10 {
    %x = affine.load %a[%i] : memref<10xi64>
    %y = affine.load %b[%i] : memref<10xf32>
    affine.store %x, %c[%i] : memref<10xi64>
    affine.store %y, %d[%i] : memref<10xf32>
  }
  affine.for %i = 0 to 10 {
    %y = affine.load %b[%i] : memref<10xf32>
    %z = arith.addf %y, %y : f32
    affine.store %z, %e[%i] : memref<10xf32>
    affine.store %z, %f[%i] : memref<10xf32>
  }
  affine.for %i = 0 to 10 {
    %x = affine.load %c[%i] : memref<10xi64>
    %y = affine.load %d[%i] : memref<10xf32>
    %w = arith.sitofp %x : i64 to f32
    affine.store %w, %d[%i] : memref<10xf32>
    affine.store %y, %g[%i] : memref<10xf32>
  }
  return
}
