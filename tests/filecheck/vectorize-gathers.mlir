// PASSES: vectorize-nests
// ARCH: x86-64-v4
//
// Every lane has its own place in the table, and is checked; the lanes of what is left that do not
// count pass the check. An index that was of 32 bits is one of 32 bits.

// CHECK-LABEL: func.func @main
// CHECK:         scf.for
// CHECK:           %[[N:.*]] = vector.load %{{.*}} : memref<100xi32>, vector<16xi32>
// CHECK:           %[[OK:.*]] = arith.cmpi ult, %{{.*}} : vector<16xi32>
// CHECK:           vector.shuffle %[[OK]], %[[OK]]
// CHECK:           %[[ALL:.*]] = vector.extract %{{.*}}[0] : i1 from vector<1xi1>
// CHECK:           cf.assert %[[ALL]]
// CHECK:           vector.gather %{{.*}}[%{{.*}}] [%[[N]]], %{{.*}} : memref<9xf32>, vector<16xi32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
//
// CHECK:         %[[N:.*]] = vector.load %{{.*}} : memref<100xi32>, vector<4xi32>
// CHECK:         cf.assert
// CHECK:         vector.gather %{{.*}}[%{{.*}}] [%[[N]]]
//
// CHECK:         %[[N:.*]] = vector.maskedload %{{.*}}, %[[MASK:.*]], %{{.*}} : memref<99xi32>
// CHECK:         %[[OUT:.*]] = arith.xori %[[MASK]]
// CHECK:         arith.ori %{{.*}}, %[[OUT]]
// CHECK:         cf.assert
// CHECK:         vector.gather %{{.*}}[%{{.*}}] [%[[N]]], %[[MASK]]
// CHECK:         vector.maskedstore
//
// Little is computed for each load: one by one.
//
// CHECK-NOT:     vector.
// CHECK:         return
func.func @main(%a: memref<100xi32>, %odd: memref<99xi32>, %t: memref<9xf32>, %b: memref<100xf32>,
                %c: memref<99xf32>, %d: memref<100xf32>) {
  affine.for %i = 0 to 100 {
    %n = affine.load %a[%i] : memref<100xi32>
    %c9 = arith.constant 9 : i32
    %ok = arith.cmpi ult, %n, %c9 : i32
    cf.assert %ok, "index out of range"
    %k = arith.index_cast %n : i32 to index
    %x = memref.load %t[%k] : memref<9xf32>
    %y = math.sqrt %x : f32
    %z = arith.addf %x, %y : f32
    affine.store %z, %b[%i] : memref<100xf32>
  }
  affine.for %i = 0 to 99 {
    %n = affine.load %odd[%i] : memref<99xi32>
    %c9 = arith.constant 9 : i32
    %ok = arith.cmpi ult, %n, %c9 : i32
    cf.assert %ok, "index out of range"
    %k = arith.index_cast %n : i32 to index
    %x = memref.load %t[%k] : memref<9xf32>
    %y = math.sqrt %x : f32
    %z = arith.addf %x, %y : f32
    affine.store %z, %c[%i] : memref<99xf32>
  }
  affine.for %i = 0 to 100 {
    %n = affine.load %a[%i] : memref<100xi32>
    %k = arith.index_cast %n : i32 to index
    %x = memref.load %t[%k] : memref<9xf32>
    affine.store %x, %d[%i] : memref<100xf32>
  }
  return
}
