// PASSES: classify-nests,jam-windows
// TARGET: gpu
//
// Threads share what a tile is: those of its windows compute several neighbours. What reads no
// element twice stays as it is.

// CHECK-LABEL: func.func @main
// CHECK:         memref.alloca(){{.*}}: memref<68x68xf32
// CHECK-NEXT:    affine.for %{{.*}} = 0 to 68 {
// CHECK-NEXT:      affine.for %{{.*}} = 0 to 68 {
// CHECK:         affine.for %[[Y:.*]] = 0 to {{8|16|32}} {
// CHECK-NEXT:      affine.for %[[X:.*]] = 0 to {{[0-9]+}} {
// CHECK-NOT:         affine.for
// CHECK:             affine.store %{{.*}}, %arg1[%{{.*}}, %[[Y]] * [[N:[0-9]+]], %[[X]]
// CHECK:             affine.store %{{.*}}, %arg1[%{{.*}}, %[[Y]] * [[N]] + 1, %[[X]]

func.func @main(%a: memref<2048x68x68xf32>, %b: memref<2048x64x64xf32>) {
  affine.for %c = 0 to 2048 {
    %t = memref.alloca() : memref<68x68xf32>
    affine.for %y = 0 to 68 {
      affine.for %x = 0 to 68 {
        %v = affine.load %a[%c, %y, %x] : memref<2048x68x68xf32>
        %n = arith.negf %v : f32
        affine.store %n, %t[%y, %x] : memref<68x68xf32>
      }
    }
    affine.for %y = 0 to 64 {
      affine.for %x = 0 to 64 {
        %0 = affine.load %t[%y + 0, %x + 0] : memref<68x68xf32>
        %1 = affine.load %t[%y + 0, %x + 1] : memref<68x68xf32>
        %2 = affine.load %t[%y + 0, %x + 2] : memref<68x68xf32>
        %3 = affine.load %t[%y + 0, %x + 3] : memref<68x68xf32>
        %4 = affine.load %t[%y + 0, %x + 4] : memref<68x68xf32>
        %5 = affine.load %t[%y + 1, %x + 0] : memref<68x68xf32>
        %6 = affine.load %t[%y + 1, %x + 1] : memref<68x68xf32>
        %7 = affine.load %t[%y + 1, %x + 2] : memref<68x68xf32>
        %8 = affine.load %t[%y + 1, %x + 3] : memref<68x68xf32>
        %9 = affine.load %t[%y + 1, %x + 4] : memref<68x68xf32>
        %10 = affine.load %t[%y + 2, %x + 0] : memref<68x68xf32>
        %11 = affine.load %t[%y + 2, %x + 1] : memref<68x68xf32>
        %12 = affine.load %t[%y + 2, %x + 2] : memref<68x68xf32>
        %13 = affine.load %t[%y + 2, %x + 3] : memref<68x68xf32>
        %14 = affine.load %t[%y + 2, %x + 4] : memref<68x68xf32>
        %15 = affine.load %t[%y + 3, %x + 0] : memref<68x68xf32>
        %16 = affine.load %t[%y + 3, %x + 1] : memref<68x68xf32>
        %17 = affine.load %t[%y + 3, %x + 2] : memref<68x68xf32>
        %18 = affine.load %t[%y + 3, %x + 3] : memref<68x68xf32>
        %19 = affine.load %t[%y + 3, %x + 4] : memref<68x68xf32>
        %20 = affine.load %t[%y + 4, %x + 0] : memref<68x68xf32>
        %21 = affine.load %t[%y + 4, %x + 1] : memref<68x68xf32>
        %22 = affine.load %t[%y + 4, %x + 2] : memref<68x68xf32>
        %23 = affine.load %t[%y + 4, %x + 3] : memref<68x68xf32>
        %24 = affine.load %t[%y + 4, %x + 4] : memref<68x68xf32>
        %s1 = arith.addf %0, %1 : f32
        %s2 = arith.addf %s1, %2 : f32
        %s3 = arith.addf %s2, %3 : f32
        %s4 = arith.addf %s3, %4 : f32
        %s5 = arith.addf %s4, %5 : f32
        %s6 = arith.addf %s5, %6 : f32
        %s7 = arith.addf %s6, %7 : f32
        %s8 = arith.addf %s7, %8 : f32
        %s9 = arith.addf %s8, %9 : f32
        %s10 = arith.addf %s9, %10 : f32
        %s11 = arith.addf %s10, %11 : f32
        %s12 = arith.addf %s11, %12 : f32
        %s13 = arith.addf %s12, %13 : f32
        %s14 = arith.addf %s13, %14 : f32
        %s15 = arith.addf %s14, %15 : f32
        %s16 = arith.addf %s15, %16 : f32
        %s17 = arith.addf %s16, %17 : f32
        %s18 = arith.addf %s17, %18 : f32
        %s19 = arith.addf %s18, %19 : f32
        %s20 = arith.addf %s19, %20 : f32
        %s21 = arith.addf %s20, %21 : f32
        %s22 = arith.addf %s21, %22 : f32
        %s23 = arith.addf %s22, %23 : f32
        %s24 = arith.addf %s23, %24 : f32
        affine.store %s24, %b[%c, %y, %x] : memref<2048x64x64xf32>
      }
    }
  }
  return
}
