// PASSES: normalize-nests,update-arguments
//
// A row is stored into the cache itself, at a place known at run time, and read from there. The
// copy of its box in the middle is one of these, too.

// CHECK-LABEL: @main
// CHECK:         %[[COPY:.*]] = memref.alloc() : memref<2x64xf32>
// CHECK-NOT:     memref.alloc
// CHECK:         memref.store %{{.*}}, %arg0[%{{.*}}, %{{.*}}] : memref<2x64xf32>
// CHECK:         affine.store %{{.*}}, %arg0[1, 3] : memref<2x64xf32>
// CHECK:         affine.load %arg0[%{{.*}}, %{{.*}}] : memref<2x64xf32>
// CHECK-NEXT:    affine.store %{{.*}}, %arg3
//
// What is read from the old contents behind the first change keeps the copy.
//
// CHECK:         affine.store %{{.*}}, %[[COPY]][0, 5] : memref<2x64xf32>
// CHECK:         affine.load %arg4[0, %{{.*}}]
// CHECK:         affine.load %[[COPY]][%{{.*}}, %{{.*}}]
// CHECK-NEXT:    affine.store %{{.*}}, %arg4
// CHECK:         return
#cache = {role = "input", name = "cache", dtype = "float32", shape = array<i64: 2, 64>, strides = array<i64: 64, 1>, constant = false, updates = 0 : i64}
#new = {role = "input", name = "new", dtype = "float32", shape = array<i64: 1>, strides = array<i64: 1>, constant = false, updates = -1 : i64}
#place = {role = "input", name = "place", dtype = "int64", shape = array<i64: 1>, strides = array<i64: 1>, constant = false, updates = -1 : i64}
#seen = {role = "output", name = "seen", dtype = "float32", shape = array<i64: 2, 64>, strides = array<i64: 64, 1>, constant = false, updates = -1 : i64}
#other = {role = "input", name = "other", dtype = "float32", shape = array<i64: 2, 64>, strides = array<i64: 64, 1>, constant = false, updates = 4 : i64}
#old = {role = "output", name = "old", dtype = "float32", shape = array<i64: 64>, strides = array<i64: 1>, constant = false, updates = -1 : i64}
func.func @main(%cache: memref<2x64xf32> {polyblocks.arg = #cache}, %new: memref<1xf32> {polyblocks.arg = #new},
                %place: memref<1xi64> {polyblocks.arg = #place}, %seen: memref<2x64xf32> {polyblocks.arg = #seen},
                %other: memref<2x64xf32> {polyblocks.arg = #other}, %old: memref<64xf32> {polyblocks.arg = #old}) {
  %copy = memref.alloc() : memref<2x64xf32>
  affine.for %i = 0 to 2 {
    affine.for %j = 0 to 64 {
      %a = affine.load %cache[%i, %j] : memref<2x64xf32>
      affine.store %a, %copy[%i, %j] : memref<2x64xf32>
    }
  }
  %row = memref.alloc() : memref<64xf32>
  affine.for %j = 0 to 64 {
    %a = affine.load %copy[1, %j] : memref<2x64xf32>
    affine.store %a, %row[%j] : memref<64xf32>
  }
  affine.for %i = 0 to 1 {
    %n = affine.load %new[%i] : memref<1xf32>
    %p = affine.load %place[%i] : memref<1xi64>
    %at = arith.index_cast %p : i64 to index
    memref.store %n, %row[%at] : memref<64xf32>
  }
  affine.for %i = 0 to 1 {
    %n = affine.load %new[%i] : memref<1xf32>
    affine.store %n, %row[%i + 3] : memref<64xf32>
  }
  affine.for %j = 0 to 64 {
    %a = affine.load %row[%j] : memref<64xf32>
    affine.store %a, %copy[1, %j] : memref<2x64xf32>
  }
  affine.for %i = 0 to 2 {
    affine.for %j = 0 to 64 {
      %a = affine.load %copy[%i, %j] : memref<2x64xf32>
      affine.store %a, %seen[%i, %j] : memref<2x64xf32>
    }
  }
  affine.for %i = 0 to 2 {
    affine.for %j = 0 to 64 {
      %a = affine.load %copy[%i, %j] : memref<2x64xf32>
      affine.store %a, %cache[%i, %j] : memref<2x64xf32>
    }
  }
  %copy2 = memref.alloc() : memref<2x64xf32>
  affine.for %i = 0 to 2 {
    affine.for %j = 0 to 64 {
      %a = affine.load %other[%i, %j] : memref<2x64xf32>
      affine.store %a, %copy2[%i, %j] : memref<2x64xf32>
    }
  }
  affine.for %i = 0 to 1 {
    %n = affine.load %new[%i] : memref<1xf32>
    affine.store %n, %copy2[0, %i + 5] : memref<2x64xf32>
  }
  affine.for %j = 0 to 64 {
    %a = affine.load %other[0, %j] : memref<2x64xf32>
    affine.store %a, %old[%j] : memref<64xf32>
  }
  affine.for %i = 0 to 2 {
    affine.for %j = 0 to 64 {
      %a = affine.load %copy2[%i, %j] : memref<2x64xf32>
      affine.store %a, %other[%i, %j] : memref<2x64xf32>
    }
  }
  return
}
