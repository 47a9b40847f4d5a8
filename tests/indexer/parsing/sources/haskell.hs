module Data.Foo (run) where
import qualified Data.Map as M
import Data.List (sort, nub)

-- | A bar. Yes.
data Bar a = Bar { x :: Int } | Baz deriving (Show)
type S = String

class Show a => Cls a where
  meth :: a -> Int

instance Cls Int where
  meth x = x

-- | Runs.
run :: Int -> Int
run 0 = go 1
run n = M.lookup n (sort n) where
  go z = z + 1
limit = 10
